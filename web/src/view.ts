/** The view: everything a person chose, and its text in the URL's hash. The two are converted without loss. */

import { isSpan, parseLength, parseMoment, renderLength, renderMoment, type Range, type Span } from "./time";

export type Theme = "system" | "light" | "dark";
export type Drawer = "" | "findings" | "studies" | "why";
/** How containers are added up; empty: each alone. */
export type Grouping = "" | "namespace" | "workload" | "node";
export const GROUPINGS: readonly Grouping[] = ["", "namespace", "workload", "node"];
/** A sheet that a link may open. */
export type LinkedSheet = "" | "rightsize";

export interface PanelChoice {
  metric: string;
  /** Empty means containers; `heat` a heat map of them. */
  scope: string;
  /** Empty unless a dashboard gave one. */
  title: string;
}

export interface View {
  range: Range | null;
  panels: PanelChoice[] | null;
  containers: string[];
  hidden: string[];
  /** The one series that is shown alone; empty: all. */
  only: string;
  /** Seconds: a line of so much earlier is drawn beside each; 0: none. */
  compare: number;
  /** Sums of groups instead of single containers. */
  by: Grouping;
  /** The span whose changes the drawer explains. */
  why: Span | null;
  /** The container whose page is shown. */
  who: string;
  /** By panel: a line that somebody drew. */
  thresholds: Readonly<Record<string, number>>;
  /** The incident that was chosen last. */
  incident: string;
  sort: string;
  /** The list has one row a workload. */
  grouped: boolean;
  search: string;
  namespace: string;
  qos: string;
  labels: string;
  node: string;
  focus: number;
  drawer: Drawer;
  sheet: LinkedSheet;
  study: string;
  finding: string;
  theme: Theme;
  utc: boolean;
}

export const PANELS_AT_MOST = 12;

export const EMPTY: View = {
  range: null,
  panels: null,
  containers: [],
  hidden: [],
  only: "",
  compare: 0,
  by: "",
  why: null,
  who: "",
  thresholds: {},
  incident: "",
  /** Empty: by the first metric that the server lists. */
  sort: "",
  grouped: false,
  search: "",
  namespace: "",
  qos: "",
  labels: "",
  node: "",
  focus: 0,
  drawer: "",
  sheet: "",
  study: "all",
  finding: "",
  theme: "system",
  utc: false,
};

export function encode(view: View): string {
  const out = new URLSearchParams();
  const put = (key: string, value: string, usual = ""): void => {
    if (value !== usual) out.set(key, value);
  };
  if (view.range) encodeRange(view.range, out);
  if (view.panels) out.set("panels", view.panels.map(encodePanel).join(","));
  put("containers", view.containers.join(","));
  put("hidden", view.hidden.join(","));
  put("only", view.only);
  put("compare", view.compare ? renderLength(view.compare) : "");
  put("by", view.by);
  put("why", view.why ? `${renderMoment(view.why.from)}/${renderMoment(view.why.to)}` : "");
  put("who", view.who);
  put("threshold", Object.entries(view.thresholds).map(([key, value]) => `${key}=${value}`).join(","));
  put("incident", view.incident);
  put("sort", view.sort, EMPTY.sort);
  put("group", view.grouped ? "workload" : "");
  put("search", view.search);
  put("namespace", view.namespace);
  put("qos", view.qos);
  put("labels", view.labels);
  put("node", view.node);
  put("focus", String(view.focus + 1), "1");
  put("drawer", view.drawer);
  put("sheet", view.sheet);
  put("study", view.study, EMPTY.study);
  put("finding", view.finding);
  put("theme", view.theme, EMPTY.theme);
  put("tz", view.utc ? "utc" : "");
  // These characters need no escape in a fragment, and are easier to read without.
  return out.toString().replaceAll("%2C", ",").replaceAll("%3A", ":").replaceAll("%2F", "/");
}

function encodeRange(range: Range, out: URLSearchParams): void {
  if (isSpan(range)) {
    out.set("from", renderMoment(range.from));
    out.set("to", renderMoment(range.to));
  } else out.set("range", "all" in range ? "all" : renderLength(range.last));
}

function encodePanel(panel: PanelChoice): string {
  const head = panel.scope ? `${panel.scope}:${panel.metric}` : panel.metric;
  return panel.title ? `${head}~${encodeURIComponent(panel.title)}` : head;
}

const OWN_KEYS = new Set(
  "range from to panels containers hidden only compare by why who threshold incident sort group search namespace qos labels node focus drawer sheet study finding theme tz dashboard".split(" "),
);

/** The view that a hash names, and what of it was not understood. Other parameters are returned as well: they are a dashboard's variables. */
export function decode(hash: string): { view: View; dashboard: string; rest: Record<string, string>; refused: string } {
  const read = new URLSearchParams(hash.replace(/^#/, ""));
  const text = (key: string): string => read.get(key) ?? "";
  const list = (key: string): string[] => text(key).split(",").filter(Boolean);
  const theme = text("theme");
  const drawer = text("drawer");
  const view: View = {
    range: decodeRange(text("range"), text("from"), text("to")),
    panels: read.has("panels") ? decodePanels(list("panels")) : null,
    containers: list("containers"),
    hidden: list("hidden"),
    only: text("only"),
    compare: parseLength(text("compare")) ?? 0,
    by: GROUPINGS.find((one) => one === text("by")) ?? "",
    why: decodeSpan(text("why")),
    who: text("who"),
    thresholds: decodeThresholds(list("threshold")),
    incident: text("incident"),
    sort: text("sort") || EMPTY.sort,
    grouped: text("group") === "workload",
    search: text("search"),
    namespace: text("namespace"),
    qos: text("qos"),
    labels: text("labels"),
    node: text("node"),
    focus: Math.min(Math.max(Math.trunc(Number(text("focus") || 1)) - 1 || 0, 0), PANELS_AT_MOST - 1),
    drawer: drawer === "findings" || drawer === "studies" || drawer === "why" ? drawer : "",
    sheet: text("sheet") === "rightsize" ? "rightsize" : "",
    study: text("study") || EMPTY.study,
    finding: text("finding"),
    theme: theme === "light" || theme === "dark" ? theme : "system",
    utc: text("tz") === "utc",
  };
  const rest: Record<string, string> = {};
  for (const [key, value] of read) if (!OWN_KEYS.has(key)) rest[key] = value;
  return { view, dashboard: text("dashboard"), rest, refused: refuseRange(view.range, text("range"), text("from"), text("to")) };
}

function decodeRange(range: string, from: string, to: string): Range | null {
  const [start, end] = [parseMoment(from), parseMoment(to)];
  if (start !== null && end !== null && end > start) return { from: start, to: end };
  if (range === "all") return { all: true };
  const last = parseLength(range);
  return last === null ? null : { last };
}

function decodeSpan(text: string): Span | null {
  const [from, to] = text.split("/").map(parseMoment);
  return from != null && to != null && to > from ? { from, to } : null;
}

function decodeThresholds(texts: string[]): Record<string, number> {
  const rows = texts.map((text) => [text.slice(0, text.lastIndexOf("=")), Number(text.slice(text.lastIndexOf("=") + 1))] as const);
  return Object.fromEntries(rows.filter(([key, value]) => key && Number.isFinite(value)));
}

/** Why a range of the address is not the one that is shown; empty where it is. */
function refuseRange(range: Range | null, text: string, from: string, to: string): string {
  if (range !== null || !(text || from || to)) return "";
  const given = text ? `range=${text.slice(0, 40)}` : `from=${from.slice(0, 40)} to=${to.slice(0, 40)}`;
  return `${given} is not a range; accepted: 15m, 1h, 6h, 1d, 1w, all, or from and to as 2026-03-01T05:00:00Z. The usual range is shown.`;
}

/** One panel for each metric: two of the same would wait for one answer. */
function decodePanels(texts: string[]): PanelChoice[] {
  const found = new Map<string, PanelChoice>();
  for (const choice of texts.map(decodePanel)) if (!found.has(panelKey(choice))) found.set(panelKey(choice), choice);
  return [...found.values()].slice(0, PANELS_AT_MOST);
}

function decodePanel(text: string): PanelChoice {
  const mark = text.indexOf("~");
  const head = mark < 0 ? text : text.slice(0, mark);
  const title = mark < 0 ? "" : text.slice(mark + 1);
  const cut = head.indexOf(":");
  return {
    scope: cut > 0 ? head.slice(0, cut) : "",
    metric: cut > 0 ? head.slice(cut + 1) : head,
    title: safeDecode(title),
  };
}

function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

export function panelKey(panel: PanelChoice): string {
  return `${panel.scope}:${panel.metric}`;
}
