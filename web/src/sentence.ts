/** The sentence of a panel: what its chart shows, also for a screen reader. */

import { matters, type FindingRow } from "./findings";
import { brief, quantity, shorten } from "./format";
import { bounds, newestReadings, oneEach, places } from "./series";
import { clock, zone, type Span } from "./time";
import type { SeriesJson, TimeseriesJson } from "./types";

const ADDS_UP = new Set(["cores", "bytes", "bytes/s", "millicores", "watts", "count"]);

export function sentence(answer: TimeseriesJson, found: FindingRow[], shown: (series: SeriesJson) => boolean, span: Span, utc: boolean): string {
  const first = found.find((one) => matters(one) && answer.series.some((series) => series.id === one.id && shown(series)));
  if (first) return `${shorten(brief(first.name), 48)}: ${first.finding.sentence}`;
  return describe(answer, shown, span, utc);
}

export function describe(answer: TimeseriesJson, shown: (series: SeriesJson) => boolean, span: Span, utc: boolean): string {
  const rows = oneEach(newestReadings(answer, span), (series) => series.name).filter((row) => shown(row.series) && row.value !== null);
  const [first] = rows;
  if (!first) return "Nothing was measured in this range.";
  const unit = answer.unit;
  const sum = rows.reduce((total, row) => total + (row.value ?? 0), 0);
  const total = ADDS_UP.has(unit) && rows.length > 1 ? `${quantity(sum, unit)} together; ` : "";
  const peak = findPeak(answer, shown, span);
  if (peak?.value === 0) return rows.length > 1 ? `All ${rows.length} at ${quantity(0, unit)}.` : `${shorten(brief(first.series.name), 48)} is at ${quantity(0, unit)}.`;
  const whose = peak && peak.series !== first.series ? `, ${shorten(brief(peak.series.name), 48)},` : "";
  const top = peak ? `; at most ${quantity(peak.value, unit)}${whose} at ${clock(peak.at, utc)} ${zone(utc, peak.at)}` : "";
  return `${total}${shorten(brief(first.series.name), 48)} ${rows.length > 1 ? "leads with" : "is at"} ${quantity(first.value, unit)}${top}.`;
}

function findPeak(answer: TimeseriesJson, shown: (series: SeriesJson) => boolean, span: Span): { at: number; value: number; series: SeriesJson } | null {
  const found = bounds(answer, shown, span);
  if (!found) return null;
  const [first, last] = places(answer.time, span);
  for (let place = first; place <= last; place += 1) {
    const series = answer.series.find((one) => shown(one) && (one.max[place] ?? one.mean[place]) === found.high);
    if (series) return { at: answer.time[place] ?? span.from, value: found.high, series };
  }
  return null;
}
