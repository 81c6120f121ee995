/** Findings as rows of one list: their order, which of them are drawn, and the span that a click zooms to. */

import { isOf } from "./series";
import type { FindingJson, StudyJson, TimeseriesJson } from "./types";
import type { Span } from "./time";

export interface FindingRow {
  key: string;
  panel: string;
  metric: string;
  id: string;
  name: string;
  node: string;
  study: string;
  finding: FindingJson;
  /** A change that is part of a cycle of the same series. */
  explained: boolean;
  /** Its urgency; of several cycles that of the first, and its place: among cycles the server's order holds. */
  lead: number;
  place: number;
}

/** So much less urgent is what a cycle explains. */
const EXPLAINED = 8;
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
  return near + 4 * effect(finding) + (WEIGHT[finding.kind] ?? 0) / 2 + finding.confidence;
}

export function collect(panel: string, answer: StudyJson, drawn: TimeseriesJson | null): FindingRow[] {
  const rows: FindingRow[] = [];
  for (const result of answer.results) {
    if (result.status !== "found") continue;
    const series = drawn?.series.find((one) => isOf(one, result.series.id ?? "-")) ?? drawn?.series.find((one) => one.name === result.series.container);
    const id = series?.id ?? result.series.id ?? "";
    result.findings.forEach((finding, place) => {
      rows.push({
        key: [result.series.metric, id.slice(0, 12), result.study, Math.round(finding.at ?? finding.from)].join("."),
        panel,
        metric: result.series.metric,
        id,
        node: series?.node ?? result.series.node ?? "",
        name: series?.name ?? result.series.container ?? result.series.node ?? "node",
        study: result.study,
        finding,
        explained: false,
        lead: 0,
        place,
      });
    });
  }
  const cycles = rows.filter((row) => row.finding.kind === "periodicity" && row.finding.confidence >= 0.8);
  for (const row of rows) {
    const at = row.finding.at;
    row.explained = row.finding.kind === "changepoint" && at !== null && cycles.some((cycle) => cycle.id === row.id && cycle.finding.from <= at && at <= cycle.finding.to);
  }
  for (const row of rows) {
    const first = rows.find((one) => one.id === row.id && one.study === row.study && one.finding.kind === "periodicity");
    row.lead = urgency(row.finding.kind === "periodicity" && first ? first : row);
  }
  return rows.sort(byUrgency);
}

/** The most urgent first. */
export function byUrgency(a: FindingRow, b: FindingRow): number {
  const weight = (row: FindingRow): number => row.lead - (row.explained ? EXPLAINED : 0);
  return weight(b) - weight(a) || a.place - b.place;
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

const STUDY_WORDS: Record<string, string> = {
  all: "all",
  trend: "trends",
  changepoint: "changes of level",
  periodicity: "what repeats",
  anomaly: "what is unusual",
  correlation: "what moves along",
  summary: "summary",
};

/** What a study is called on the page. */
export function studyWord(study: string): string {
  return STUDY_WORDS[study] ?? study;
}

export function kindWord(kind: string): string {
  return WORDS[kind] ?? kind;
}
