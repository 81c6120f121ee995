/** What a person chose on the page of many nodes, and its text in the URL's hash. The two are converted without loss. */

import { isSpan, parseLength, parseMoment, renderLength, renderMoment, type Range } from "../time";
import type { Theme } from "../view";

export type Tab = "nodes" | "workloads" | "compare";
export const TABS: readonly Tab[] = ["nodes", "workloads", "compare"];

export interface ClusterView {
  tab: Tab;
  measure: string;
  range: Range | null;
  /** Words that a node's name must have. */
  search: string;
  /** The node that was looked at last: who comes back finds it again. */
  node: string;
  /** Of the table of workloads. */
  metric: string;
  workload: string;
  /** Two nodes, or empty for all; and seconds before, where two ranges are compared. */
  left: string;
  right: string;
  before: number;
  theme: Theme;
  utc: boolean;
}

export const EMPTY_VIEW: ClusterView = {
  tab: "nodes", measure: "cpu", range: null, search: "", node: "", metric: "cpu", workload: "", left: "", right: "", before: 0, theme: "system", utc: false,
};

export const USUAL_SECONDS = 3 * 3600;

export function encodeView(view: ClusterView): string {
  const out = new URLSearchParams();
  const put = (key: string, value: string, usual = ""): void => {
    if (value !== usual) out.set(key, value);
  };
  put("tab", view.tab, EMPTY_VIEW.tab);
  put("measure", view.measure, EMPTY_VIEW.measure);
  if (view.range && isSpan(view.range)) {
    out.set("from", renderMoment(view.range.from));
    out.set("to", renderMoment(view.range.to));
  } else if (view.range) out.set("range", "all" in view.range ? "all" : renderLength(view.range.last));
  put("search", view.search);
  put("at", view.node);
  put("metric", view.metric, EMPTY_VIEW.metric);
  put("workload", view.workload);
  put("left", view.left);
  put("right", view.right);
  put("before", view.before ? renderLength(view.before) : "");
  put("theme", view.theme, EMPTY_VIEW.theme);
  put("tz", view.utc ? "utc" : "");
  return out.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
}

export function decodeView(hash: string): ClusterView {
  const read = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: string): string => read.get(key) ?? "";
  const theme = text("theme");
  return {
    tab: TABS.find((one) => one === text("tab")) ?? "nodes",
    measure: text("measure") || EMPTY_VIEW.measure,
    range: decodeRange(text("range"), text("from"), text("to")),
    search: text("search"),
    node: text("at"),
    metric: text("metric") || EMPTY_VIEW.metric,
    workload: text("workload"),
    left: text("left"),
    right: text("right"),
    before: parseLength(text("before")) ?? 0,
    theme: theme === "light" || theme === "dark" ? theme : "system",
    utc: text("tz") === "utc",
  };
}

function decodeRange(range: string, from: string, to: string): Range | null {
  const [start, end] = [parseMoment(from), parseMoment(to)];
  if (start !== null && end !== null && end > start) return { from: start, to: end };
  if (range === "all") return { all: true };
  const last = parseLength(range);
  return last === null ? null : { last };
}

/** The page of one node, in the same range; with its container where the reason is about one, or with a search. */
export function nodeLink(node: string, span: { from: number; to: number }, view: ClusterView, more: { container?: string; search?: string } = {}): string {
  const out = new URLSearchParams({ node, from: renderMoment(span.from), to: renderMoment(span.to) });
  if (more.container) out.set("containers", more.container);
  if (more.search) out.set("search", more.search);
  if (view.theme !== "system") out.set("theme", view.theme);
  if (view.utc) out.set("tz", "utc");
  return `/node#${out.toString().replaceAll("%3A", ":")}`;
}

/** Where the page of a node finds the way back to this one, as it was. */
export const WAY_BACK = "nodescope.cluster";
