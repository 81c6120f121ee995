/** The same series earlier: an hour, a day or a week before, drawn beside the line and told as a difference. */

import { figure } from "./format";
import { isOf, nearest, type Value } from "./series";
import type { SeriesJson, TimeseriesJson } from "./types";

export const EARLIER: readonly { label: string; seconds: number }[] = [
  { label: "nothing earlier", seconds: 0 },
  { label: "an hour before", seconds: 3600 },
  { label: "a day before", seconds: 86400 },
  { label: "a week before", seconds: 604800 },
];

/** What a panel had so many seconds before. */
export interface Earlier {
  answer: TimeseriesJson;
  seconds: number;
}

export function seriesBefore({ answer }: Earlier, series: SeriesJson): SeriesJson | undefined {
  return answer.series.find((one) => one.id === series.id || (one.node === series.node && isOf(one, series.name)));
}

/** Its mean so much earlier; null where nothing was measured within a bucket of that moment. */
export function valueBefore(earlier: Earlier, series: SeriesJson, at: number): Value {
  const before = seriesBefore(earlier, series);
  const { time, bucket_seconds: bucket } = earlier.answer;
  const place = nearest(time, at - earlier.seconds);
  const found = time[place];
  if (!before || found === undefined || Math.abs(found - (at - earlier.seconds)) > Math.max(1.5 * bucket, 2)) return null;
  return before.mean[place] ?? null;
}

/** "+12 %" against earlier; empty where one of both was not measured. */
export function difference(now: Value, before: Value): string {
  if (now === null || before === null) return "";
  if (before === 0) return now === 0 ? "±0 %" : "was 0";
  const percent = (now / before - 1) * 100;
  if (Math.abs(percent) < 0.5) return "±0 %";
  return Math.abs(percent) >= 1000 ? `× ${figure(now / before, 2)}` : `${percent > 0 ? "+" : ""}${figure(percent, 2)} %`;
}
