/** Findings as rows of one list: their order, which of them are drawn, and the span that a click zooms to. */

import type { FindingJson, StudyJson, TimeseriesJson } from "./types";
import type { Span } from "./time";

export interface FindingRow {
  key: string;
  panel: string;
  metric: string;
  id: string;
  name: string;
  study: string;
  finding: FindingJson;
  /** A change that is part of a cycle of the same series. */
  explained: boolean;
}

/** Part of the urgency: a trend towards a limit first, then changes, then the rest. */
const WEIGHT: Record<string, number> = { trend: 3, changepoint: 2, anomaly: 2, periodicity: 1, correlation: 0, summary: -1 };

/** The size of the change, as a share of the level: a change of one percent may be certain and still not matter. */
export function effect(finding: FindingJson): number {
  if (finding.kind === "periodicity") return finding.strength ?? 0;
  const level = Math.max(Math.abs(finding.before ?? 0), Math.abs(finding.after ?? 0));
  if (level === 0) return finding.kind === "anomaly" ? 1 : 0;
  const step = finding.before !== null && finding.after !== null ? Math.abs(finding.after - finding.before) : Math.abs(finding.magnitude ?? 0);
  return Math.min(step / level, 1);
}

/** Whether it is marked on the chart and may be the panel's sentence before anybody chose it. */
export function matters(found: FindingRow): boolean {
  return isEvent(found) && !found.explained && found.finding.confidence >= 0.8 && (effect(found.finding) >= 0.25 || limitAt(found.finding) !== null);
}

export function urgency(found: FindingRow): number {
  const { finding } = found;
  const coming = finding.time_to_limit_seconds;
  const near = typeof coming === "number" && coming < 7 * 86400 ? 4 : 0;
  return (found.explained ? -8 : 0) + near + 4 * effect(finding) + (WEIGHT[finding.kind] ?? 0) / 2 + finding.confidence;
}

export function collect(panel: string, answer: StudyJson, drawn: TimeseriesJson | null): FindingRow[] {
  const rows: FindingRow[] = [];
  for (const result of answer.results) {
    if (result.status !== "found") continue;
    const series = drawn?.series.find((one) => one.id === result.series.id) ?? drawn?.series.find((one) => one.name === result.series.container);
    const id = result.series.id ?? series?.id ?? "";
    for (const finding of result.findings) {
      rows.push({
        key: [result.series.metric, id.slice(0, 12), result.study, Math.round(finding.at ?? finding.from)].join("."),
        panel,
        metric: result.series.metric,
        id,
        name: series?.name ?? result.series.container ?? result.series.node ?? "node",
        study: result.study,
        finding,
        explained: false,
      });
    }
  }
  const cycles = rows.filter((row) => row.finding.kind === "periodicity" && row.finding.confidence >= 0.8);
  for (const row of rows) {
    const at = row.finding.at;
    row.explained = row.finding.kind === "changepoint" && at !== null && cycles.some((cycle) => cycle.id === row.id && cycle.finding.from <= at && at <= cycle.finding.to);
  }
  return rows.sort((a, b) => urgency(b) - urgency(a));
}

/** A summary describes the series; all other findings are events. */
export function isEvent(found: FindingRow): boolean {
  return found.finding.kind !== "summary";
}

export function limitAt(finding: FindingJson): number | null {
  const coming = finding.time_to_limit_seconds;
  return typeof coming === "number" && Number.isFinite(coming) ? finding.to + coming : null;
}

/** The finding with room around it; a trend up to its limit if that is near. */
export function spanOf(finding: FindingJson, bounds: Span): Span {
  const at = finding.at;
  if (at !== null && finding.kind !== "periodicity" && finding.kind !== "trend") {
    const room = Math.max(60, Math.min(600, (bounds.to - bounds.from) / 12));
    return { from: Math.max(at - room, bounds.from - room / 4), to: Math.min(at + room, bounds.to + room / 4) };
  }
  const width = Math.max(finding.to - finding.from, 10);
  const limit = finding.kind === "trend" ? limitAt(finding) : null;
  const end = limit !== null && limit - finding.to < width ? Math.max(limit, finding.to) : finding.to;
  return { from: finding.from - width * 0.05, to: end + width * 0.05 };
}

const WORDS: Record<string, string> = {
  trend: "trend",
  changepoint: "changed",
  periodicity: "repeats",
  anomaly: "unusual",
  correlation: "moves along",
  summary: "summary",
};

export function kindWord(kind: string): string {
  return WORDS[kind] ?? kind;
}
