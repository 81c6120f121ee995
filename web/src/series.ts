/** A panel's columns: bounds, values under the cursor, and the live tail appended in place. */

import type { Series, Timeseries, Value } from "./types";
import type { Span } from "./time";

/** The place whose time is nearest; -1 when there is none. */
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

/** First and last place inside a span, one beyond on each side so that lines run off the edge. */
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

export function bounds(answer: Timeseries, shown: (series: Series) => boolean, span: Span): Bounds | null {
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

/** The axis: from zero unless the data live far above it, with air at the top. */
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
  series: Series;
  /** Where the value was found; -1 when there is none. */
  place: number;
  value: Value;
  low: Value;
  high: Value;
}

/** What each series says at a place, the largest first and the missing last. */
export function readings(answer: Timeseries, place: number): Reading[] {
  const rows = answer.series.map((series) => ({
    series,
    place: series.mean[place] == null ? -1 : place,
    value: series.mean[place] ?? null,
    low: series.min[place] ?? null,
    high: series.max[place] ?? null,
  }));
  return rows.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity) || a.series.name.localeCompare(b.series.name));
}

/** The newest value of each series inside the span: what the legend says with no cursor. */
export function newestReadings(answer: Timeseries, span: Span): Reading[] {
  const [first, last] = places(answer.time, span);
  const rows = answer.series.map((series) => {
    for (let place = last; place >= first; place -= 1) {
      const value = series.mean[place] ?? null;
      if (value !== null) return { series, place, value, low: series.min[place] ?? null, high: series.max[place] ?? null };
    }
    return { series, place: -1, value: null, low: null, high: null };
  });
  return rows.sort((a, b) => (b.value ?? -Infinity) - (a.value ?? -Infinity) || a.series.name.localeCompare(b.series.name));
}

/** One row a name: of a container's lives the one that has a value, the newest of them. */
export function oneEach(rows: Reading[], key: (series: Series) => string): Reading[] {
  const best = new Map<string, Reading>();
  for (const row of rows) {
    const had = best.get(key(row.series));
    if (!had || row.place > had.place) best.set(key(row.series), row);
  }
  return rows.filter((row) => best.get(key(row.series)) === row);
}

export function gapAt(series: Series, at: number): string {
  return series.gaps.find((gap) => gap.from <= at && at <= gap.to)?.reason ?? "";
}

/** One tick of the live tail, in place; what fell out on the left is dropped, so memory stays flat. */
export function append(answer: Timeseries, at: number, values: Record<string, Value>, keepFrom: number): boolean {
  const newest = answer.time[answer.time.length - 1];
  if (newest !== undefined && at <= newest) return false;
  answer.time.push(at);
  for (const series of answer.series) {
    // Not named: nothing new (slow tables tick every five seconds). The line runs on;
    // only a null is a gap.
    const value = values[series.id] as Value;
    series.mean.push(value);
    series.min.push(value);
    series.max.push(value);
  }
  // Dropping costs a move of the whole array: done by the sixteen.
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

export function hasValues(answer: Timeseries): boolean {
  return answer.series.some((series) => series.mean.some((value) => value != null));
}
