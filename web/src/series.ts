/** The columns of a panel's answer: bounds, values at the cursor, and live points appended in place. */

import type { Span } from "./time";
import type { SeriesJson, TimeseriesJson } from "./types";

/** null: not measured. */
export type Value = number | null;

/** The id in an address: twelve characters of a container's, the whole of anything else. */
export function shortId(id: string): string {
  return id.includes(":") ? id : id.slice(0, 12);
}

/** Whether a word of the address means this series or row: its name, or the beginning of an id of any of its lives. */
export function isOf(one: { id: string; name: string; lives?: readonly string[] }, word: string): boolean {
  return one.name === word || one.id.startsWith(word) || (one.lives ?? []).some((life) => life.startsWith(word));
}

/** Whether one is a service of systemd that runs inside the other. */
export function isInside(inner: { id: string; name: string; node: string }, outer: { id: string; name: string; node: string }): boolean {
  const areServices = inner.id.startsWith("service:") && outer.id.startsWith("service:");
  return areServices && inner.node === outer.node && inner.name.startsWith(`${outer.name}/`);
}

/** The index of the nearest time; -1 when there is none. */
export function nearest(time: readonly number[], at: number): number {
  if (time.length === 0) return -1;
  let low = 0;
  let high = time.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((time[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const before = time[low - 1];
  return before !== undefined && at - before < (time[low] ?? Infinity) - at ? low - 1 : low;
}

/** The first and last index inside a span, and one more on each side so that lines reach the edges. */
export function places(time: readonly number[], span: Span): [number, number] {
  let first = 0;
  while (first < time.length && (time[first] ?? 0) < span.from) first += 1;
  let last = time.length - 1;
  while (last >= 0 && (time[last] ?? 0) > span.to) last -= 1;
  return [Math.max(first - 1, 0), Math.min(last + 1, time.length - 1)];
}

export interface Bounds {
  low: number;
  high: number;
}

export function bounds(answer: TimeseriesJson, shown: (series: SeriesJson) => boolean, span: Span): Bounds | null {
  const [first, last] = places(answer.time, span);
  let low = Infinity;
  let high = -Infinity;
  for (const series of answer.series) {
    if (!shown(series)) continue;
    for (let place = first; place <= last; place += 1) {
      const bottom = series.min[place] ?? series.mean[place];
      const top = series.max[place] ?? series.mean[place];
      if (bottom !== null && bottom !== undefined && Number.isFinite(bottom)) low = Math.min(low, bottom);
      if (top !== null && top !== undefined && Number.isFinite(top)) high = Math.max(high, top);
    }
  }
  return high === -Infinity ? null : { low, high };
}

export function boundsOfStack(time: readonly number[], columns: readonly (readonly Value[])[], span: Span): Bounds | null {
  const [first, last] = places(time, span);
  const high = Math.max(...columns.flatMap((column) => column.slice(first, last + 1).filter((value) => value !== null)), -Infinity);
  return high === -Infinity ? null : { low: 0, high };
}

/** The range of the y axis: from zero unless all values are far above it, with some room at the top. */
export function axisRange(found: Bounds | null, limit: number | null): [number, number] {
  if (!found) return [0, 1];
  const high = limit !== null && Number.isFinite(limit) ? Math.max(found.high, limit) : found.high;
  const flat = high - found.low;
  const far = found.low > 0 && flat > 0 && flat < found.low / 20;
  const bottom = found.low < 0 ? found.low * 1.05 : far ? found.low - flat * 0.2 : 0;
  const top = high > bottom ? high + (high - bottom) * 0.08 : bottom + 1;
  return [bottom, top];
}

export interface Reading {
  series: SeriesJson;
  /** The index of the value; -1 when there is none. */
  place: number;
  value: Value;
  low: Value;
  high: Value;
  /** The end of its last bucket, where it has no value any more. */
  endedAt?: number;
}

/** The value of each series at an index, the largest first and the missing last. */
export function readings(answer: TimeseriesJson, place: number): Reading[] {
  return largestFirst(answer.series.map((series) => readingAt(series, place)));
}

/** Slow tables are sampled every thirty seconds: what has no value for longer is gone. */
const GONE_SECONDS = 35;

/** The value of each series at the end of the span, which the legend shows while there is no cursor; of one that is gone, when it ended. */
export function newestReadings(answer: TimeseriesJson, span: Span): Reading[] {
  const [first, last] = places(answer.time, span);
  const lasts = answer.series.map((series) => {
    let place = last;
    while (place >= first && series.mean[place] == null) place -= 1;
    return place < first ? -1 : place;
  });
  const newest = answer.time[Math.max(...lasts, -1)] ?? 0;
  const gone = Math.max(GONE_SECONDS, 2.5 * answer.bucket_seconds);
  return largestFirst(answer.series.map((series, index) => {
    const place = lasts[index] ?? -1;
    const at = answer.time[place];
    if (at === undefined || newest - at <= gone) return readingAt(series, place);
    return { ...readingAt(series, -1), endedAt: at + answer.bucket_seconds };
  }));
}

/** When the newest readings were taken. */
export function newestAt(answer: TimeseriesJson, rows: readonly Reading[]): number | null {
  const place = Math.max(...rows.map((row) => row.place), -1);
  return answer.time[place] ?? null;
}

function readingAt(series: SeriesJson, place: number): Reading {
  const value = series.mean[place] ?? null;
  return { series, place: value === null ? -1 : place, value, low: series.min[place] ?? null, high: series.max[place] ?? null };
}

function largestFirst(rows: Reading[]): Reading[] {
  return rows.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity) || a.series.name.localeCompare(b.series.name));
}

/** One row for each key: of several runs of a container the newest that has a value. */
export function oneEach(rows: Reading[], key: (series: SeriesJson) => string): Reading[] {
  const best = new Map<string, Reading>();
  for (const row of rows) {
    const had = best.get(key(row.series));
    if (!had || row.place > had.place) best.set(key(row.series), row);
  }
  return rows.filter((row) => best.get(key(row.series)) === row);
}

export function gapAt(series: SeriesJson, at: number): string {
  return series.gaps.find((gap) => gap.from <= at && at <= gap.to)?.reason ?? "";
}

/** Appends one live sample in place and drops what is older than keepFrom, so that memory does not grow. */
export function append(answer: TimeseriesJson, at: number, values: Record<string, Value>, keepFrom: number): boolean {
  const newest = answer.time[answer.time.length - 1];
  if (newest !== undefined && at <= newest) return false;
  answer.time.push(at);
  for (const series of answer.series) {
    // A series that is absent has nothing new (slow tables are sampled every five seconds):
    // undefined lets the line run on, only null is a gap.
    const value = values[series.id] as Value;
    series.mean.push(value);
    series.min.push(value);
    series.max.push(value);
  }
  // Dropping moves the whole array, so sixteen are dropped at once.
  let old = 0;
  while (old < answer.time.length - 2 && (answer.time[old + 1] ?? 0) < keepFrom) old += 1;
  if (old >= 16) {
    answer.time.splice(0, old);
    for (const series of answer.series) {
      series.mean.splice(0, old);
      series.min.splice(0, old);
      series.max.splice(0, old);
      series.gaps = series.gaps.filter((gap) => gap.to >= keepFrom);
    }
  }
  answer.to = at;
  return true;
}

/** What the stream told while an answer was on its way lies behind its end: it is taken over from the answer before. */
export function takeOver(answer: TimeseriesJson, before: TimeseriesJson): void {
  const end = Math.max(answer.to, answer.time[answer.time.length - 1] ?? 0);
  before.time.forEach((at, place) => {
    if (at <= end) return;
    const told = before.series.filter((series) => series.mean[place] !== undefined);
    append(answer, at, Object.fromEntries(told.map((series) => [series.id, series.mean[place] as Value])), -Infinity);
  });
}

export function hasValues(answer: TimeseriesJson): boolean {
  return answer.series.some((series) => series.mean.some((value) => value != null));
}
