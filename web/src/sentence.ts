/** The sentence of a panel: what its chart shows, also for a screen reader. */

import { matters, type FindingRow } from "./findings";
import { brief, quantity, shorten } from "./format";
import type { Joined } from "./groups";
import { bounds, isInside, newestAt, newestReadings, oneEach, places, type Reading } from "./series";
import { minute, tellTimes, within, zone, type Span } from "./time";
import type { SeriesJson, TimeseriesJson } from "./types";

const ADDS_UP = new Set(["cores", "bytes", "bytes/s", "millicores", "watts", "count"]);

/** What a share is of, and what it means. */
const TOLD: Record<string, (share: string) => string> = {
  cpu_throttled: (share) => `is throttled in ${share} of its periods`,
  pressure_cpu: (share) => `waits for CPU ${share} of the time`,
  pressure_memory: (share) => `waits for memory ${share} of the time`,
  pressure_io: (share) => `waits for I/O ${share} of the time`,
};
/** From this share of its limit on it is worth a word. */
const NEAR_LIMIT = 0.8;

/** A trend that ended so long, and by so much of the range, before its end is over. */
const OVER_SECONDS = 60;
const OVER_SHARE = 0.02;

/** How a sentence is told. */
export interface Telling {
  shown: (series: SeriesJson) => boolean;
  span: Span;
  utc: boolean;
  /** Names have their node beside them. */
  many: boolean;
  /** How its series were added up; empty: each stands alone. */
  joined?: Joined;
  /** Only containers that a filter admits were asked for. */
  filtered?: boolean;
}

export function sentence(answer: TimeseriesJson, found: FindingRow[], telling: Telling): string {
  const first = found.find((one) => matters(one) && isWithin(one, telling.span) && answer.series.some((series) => series.id === one.id && telling.shown(series)));
  if (first) return `${nameOf(first, telling)}${tellEnd(first, telling)}: ${tellTimes(first.finding.sentence, telling.utc, telling.span.to)}`;
  return describe(answer, telling);
}

/** What is over by the end of the picture is not told as if it went on: "rises" of a trend that ended with a kill. */
function tellEnd({ finding }: FindingRow, { span, utc }: Telling): string {
  const isOver = finding.kind === "trend" && span.to - finding.to > Math.max(OVER_SECONDS, OVER_SHARE * (span.to - span.from));
  return isOver ? ` until ${minute(finding.to, utc)}` : "";
}

/** A finding about a time that is not shown says nothing about the picture. */
function isWithin(found: FindingRow, { from, to }: Span): boolean {
  const { at } = found.finding;
  if (at !== null) return at >= from && at <= to;
  return found.finding.from <= to && found.finding.to >= from;
}

function nameOf(one: { name: string; node: string }, { many }: Telling): string {
  return `${shorten(brief(one.name), 48)}${many ? ` on ${shorten(one.node, 24)}` : ""}`;
}

export function describe(answer: TimeseriesJson, telling: Telling): string {
  const { shown, span, utc } = telling;
  const drawn = oneEach(newestReadings(answer, span), (series) => `${series.node} ${series.name}`).filter((row) => shown(row.series));
  const rows = drawn.filter((row) => row.value !== null);
  const { unit } = answer;
  const peak = findPeak(answer, telling);
  if (!peak) return tellNothing(answer, telling);
  if (peak.value === 0) return drawn.length > 1 ? `All ${drawn.length} at ${quantity(0, unit)} in the whole range.` : `${nameOf(peak.series, telling)} is at ${quantity(0, unit)} in the whole range.`;
  const top = `peak ${quantity(peak.value, unit)}, ${nameOf(peak.series, telling)}, ${within(peak.at, answer.bucket_seconds, utc)} ${zone(utc, peak.at)}.`;
  const [first] = rows;
  const end = newestAt(answer, rows);
  if (!first || end === null) return `At the end none of them is there; ${top}`;
  // What a service inside another one uses is in that one's figure.
  const adding = rows.filter((row) => !rows.some((other) => isInside(row.series, other.series)));
  const sum = adding.reduce((total, row) => total + (row.value ?? 0), 0);
  const total = ADDS_UP.has(unit) && adding.length > 1 ? `; ${telling.joined === "sum" ? `all ${rows.length}` : `the ${rows.length} drawn`} together ${quantity(sum, unit)}` : "";
  return `At ${minute(end, utc)} ${nameOf(first.series, telling)} ${tellLevel(answer, first, rows.length)}${total}; ${top}`;
}

/** Why there is nothing to tell: damaged files, a filter, or no sample. */
function tellNothing({ refused, series }: TimeseriesJson, { filtered }: Telling): string {
  if (refused.length) return `Nothing of this range can be read: ${refused.length === 1 ? "a file is" : `${refused.length} files are`} damaged.`;
  return filtered && series.length === 0 ? "No container of this filter is in this range." : "Nothing was measured in this range.";
}

/** "is at 497 MiB (97 % of its limit)"; of several the one that leads. */
function tellLevel({ metric, unit }: TimeseriesJson, { series, value }: Reading, drawn: number): string {
  const level = quantity(value, unit);
  if (drawn > 1) return `leads with ${level}`;
  const share = series.limit && value !== null ? value / series.limit : 0;
  const near = share >= NEAR_LIMIT ? ` (${quantity(share, "ratio")} of its limit)` : "";
  return `${TOLD[metric]?.(level) ?? `is at ${level}`}${near}`;
}

function findPeak(answer: TimeseriesJson, { shown, span }: Telling): { at: number; value: number; series: SeriesJson } | null {
  const found = bounds(answer, shown, span);
  if (!found) return null;
  const [first, last] = places(answer.time, span);
  for (let place = first; place <= last; place += 1) {
    const series = answer.series.find((one) => shown(one) && (one.max[place] ?? one.mean[place]) === found.high);
    if (series) return { at: answer.time[place] ?? span.from, value: found.high, series };
  }
  return null;
}
