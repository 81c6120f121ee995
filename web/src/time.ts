/** Times and ranges: parsed from the URL and from text, written for the URL and for people, zoomed and shifted. */

export interface Span {
  from: number;
  to: number;
}

/** The newest seconds, all there is, or a fixed span. */
export type Range = { last: number } | { all: true } | Span;

const UNITS: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 };

export const CHOICES: readonly { label: string; range: Range }[] = [
  { label: "last 5 min", range: { last: 300 } },
  { label: "last 15 min", range: { last: 900 } },
  { label: "last hour", range: { last: 3600 } },
  { label: "last 6 hours", range: { last: 21600 } },
  { label: "last day", range: { last: 86400 } },
  { label: "last week", range: { last: 604800 } },
  { label: "all", range: { all: true } },
];

/** "15m" to 900; null when it is not a duration. */
export function parseLength(text: string): number | null {
  const found = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text.trim());
  if (!found) return null;
  const seconds = Number(found[1]) * (UNITS[found[2] ?? ""] ?? NaN);
  return seconds > 0 && Number.isFinite(seconds) ? seconds : null;
}

export function renderLength(seconds: number): string {
  for (const unit of ["w", "d", "h", "m"]) {
    const size = UNITS[unit] ?? 1;
    if (seconds >= size && seconds % size === 0) return `${seconds / size}${unit}`;
  }
  return `${seconds}s`;
}

/** ISO 8601 or epoch seconds. */
export function parseMoment(text: string): number | null {
  if (/^-?\d+(\.\d+)?$/.test(text)) return Number(text);
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const at = Date.parse(text) / 1000;
  return Number.isFinite(at) ? at : null;
}

/** ISO 8601 for the URL, with milliseconds only where there are any. */
export function renderMoment(at: number): string {
  return new Date(Math.round(at * 1000)).toISOString().replace(/(?:\.000)?Z$/, "Z");
}

export function isSpan(range: Range): range is Span {
  return "from" in range;
}

export function resolve(range: Range, first: number, newest: number): Span {
  if ("last" in range) return { from: newest - range.last, to: newest };
  if ("all" in range) return { from: first, to: Math.max(newest, first + 1) };
  return range;
}

export const SHORTEST_SECONDS = 2;

/** factor < 1 zooms in; the time `at` keeps its place on the screen. */
export function zoom(span: Span, factor: number, at: number, longest: number): Span {
  const width = span.to - span.from;
  const wanted = Math.min(Math.max(width * factor, SHORTEST_SECONDS), Math.max(longest, SHORTEST_SECONDS));
  const share = (at - span.from) / width;
  const from = at - share * wanted;
  return { from, to: from + wanted };
}

export function shift(span: Span, seconds: number): Span {
  return { from: span.from + seconds, to: span.to + seconds };
}

/** Moves a span back into the bounds; its width is kept. */
export function clamp(span: Span, bounds: Span): Span {
  const width = span.to - span.from;
  if (span.to > bounds.to && span.from > bounds.from) {
    return { from: Math.max(bounds.to - width, bounds.from), to: Math.max(bounds.to, bounds.from + width) };
  }
  if (span.from < bounds.from && span.to < bounds.to) return { from: bounds.from, to: bounds.from + width };
  return span;
}

const formatters = new Map<string, Intl.DateTimeFormat>();

function formatter(utc: boolean, parts: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = JSON.stringify([utc, parts]);
  let made = formatters.get(key);
  if (!made) {
    made = new Intl.DateTimeFormat("en-GB", { ...parts, hourCycle: "h23", ...(utc ? { timeZone: "UTC" } : {}) });
    formatters.set(key, made);
  }
  return made;
}

export function clock(at: number, utc: boolean): string {
  return formatter(utc, { hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(at * 1000);
}

/** "18:48" */
export function minute(at: number, utc: boolean): string {
  return clock(at, utc).slice(0, 5);
}

/** When something was that is known to a bucket only: never more exact than the bucket. */
export function within(from: number, seconds: number, utc: boolean): string {
  if (seconds <= 2) return `at ${clock(from, utc)}`;
  const [first, last] = [minute(from, utc), minute(from + seconds, utc)];
  return first === last || seconds < 60 ? `at ${first}` : `between ${first} and ${last}`;
}

const WRITTEN = /(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d) UTC/g;

/** A sentence of the server with its times in the chosen zone; a day only where it is not that of `near`, the zone once. */
export function tellTimes(text: string, utc: boolean, near: number): string {
  const count = text.match(WRITTEN)?.length ?? 0;
  let seen = 0;
  return text.replace(WRITTEN, (_, date: string, time: string) => {
    const at = Date.parse(`${date}T${time}Z`) / 1000;
    seen += 1;
    const head = day(at, utc) === day(near, utc) ? "" : `${day(at, utc)} `;
    return `${head}${clock(at, utc)}${seen === count ? ` ${zone(utc, at)}` : ""}`;
  });
}

export function day(at: number, utc: boolean): string {
  const parts = formatter(utc, { year: "numeric", month: "2-digit", day: "2-digit" }).formatToParts(at * 1000);
  const pick = (type: string): string => parts.find((part) => part.type === type)?.value ?? "";
  return `${pick("year")}-${pick("month")}-${pick("day")}`;
}

export function zone(utc: boolean, at: number): string {
  if (utc) return "UTC";
  const parts = formatter(false, { timeZoneName: "short" }).formatToParts(at * 1000);
  return parts.find((part) => part.type === "timeZoneName")?.value ?? "local";
}

export function moment(at: number, utc: boolean): string {
  return `${day(at, utc)} ${clock(at, utc)}`;
}

/** A label of the time axis, as exact as the step between two labels requires; at midnight the day. */
export function tick(at: number, step: number, utc: boolean): string {
  const time = clock(at, utc);
  if (step >= 86400 || (time === "00:00:00" && step >= 60)) return day(at, utc).slice(5);
  if (step >= 60) return time.slice(0, 5);
  return step >= 1 ? time : `${time}${(at % 1).toFixed(3).slice(1)}`;
}

/** "2026-03-01 03:10:00 - 03:25:00 UTC"; the second day only where it differs. */
export function renderSpan(span: Span, utc: boolean): string {
  const same = day(span.from, utc) === day(span.to, utc);
  return `${moment(span.from, utc)} - ${same ? clock(span.to, utc) : moment(span.to, utc)} ${zone(utc, span.to)}`;
}

/** The same where there is little room: no year, no zone, seconds only of a few minutes. */
export function briefSpan(span: Span, utc: boolean): string {
  const cut = span.to - span.from < 600 ? 8 : 5;
  const [from, to] = [clock(span.from, utc).slice(0, cut), clock(span.to, utc).slice(0, cut)];
  const days = [day(span.from, utc).slice(5), day(span.to, utc).slice(5)];
  return days[0] === days[1] ? `${days[0]} ${from} - ${to}` : `${days[0]} ${from} - ${days[1]} ${to}`;
}

/** A duration for people: "15 min", "1.5 h", "3 d". */
export function duration(seconds: number): string {
  const rows: [number, string][] = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  for (const [size, unit] of rows) {
    if (seconds >= size) return `${Number((seconds / size).toPrecision(3))} ${unit}`;
  }
  return seconds > 0 ? `${Number((seconds * 1000).toPrecision(3))} ms` : "0 s";
}
