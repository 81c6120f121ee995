/** The keyboard of the page of many nodes: one table, read by the handler and by the `?` sheet. */

import { nextTheme } from "../theme";
import type { ClusterModel } from "./model";
import { TABS } from "./view";

export interface ClusterKey {
  keys: readonly string[];
  shown: string;
  does: string;
  run(model: ClusterModel, event: KeyboardEvent): void;
}

export const CLUSTER_KEYS: readonly ClusterKey[] = [
  { keys: ["ArrowDown", "j"], shown: "↓ j", does: "the next node", run: (_, event) => step(event, 1) },
  { keys: ["ArrowUp", "k"], shown: "↑ k", does: "the node before", run: (_, event) => step(event, -1) },
  { keys: ["ArrowLeft"], shown: "← →", does: "move the cursor; with Shift pan", run: (model, event) => (event.shiftKey ? model.pan(-0.25) : model.moveCursor(-1)) },
  { keys: ["ArrowRight"], shown: "", does: "", run: (model, event) => (event.shiftKey ? model.pan(0.25) : model.moveCursor(1)) },
  { keys: ["+", "="], shown: "+ -", does: "zoom in at the cursor, zoom out", run: (model) => model.zoomBy(0.6) },
  { keys: ["-", "_"], shown: "", does: "", run: (model) => model.zoomBy(1 / 0.6) },
  { keys: ["0"], shown: "0", does: "reset the range", run: (model) => model.goTo(null) },
  { keys: ["Backspace"], shown: "Backspace", does: "the view before this one", run: () => history.back() },
  { keys: ["m"], shown: "m", does: "the next measure", run: (model, event) => nextMeasure(model, event) },
  { keys: ["1", "2", "3"], shown: "1 2 3", does: "nodes, workloads, compare", run: (model, event) => model.change({ tab: TABS[Number(event.key) - 1] ?? "nodes" }) },
  { keys: ["c"], shown: "c", does: "compare this node, then with the next one marked", run: (model) => mark(model) },
  { keys: ["/"], shown: "/", does: "filter", run: (model) => focusOn(model.view.tab === "workloads" ? "workload-search" : "node-search") },
  { keys: ["t"], shown: "t", does: "theme: automatic, light, dark", run: (model) => model.change({ theme: nextTheme(model.view.theme) }, false) },
  { keys: ["u"], shown: "u", does: "UTC or local time", run: (model) => model.change({ utc: !model.view.utc }, false) },
  { keys: ["?"], shown: "?", does: "this sheet", run: (model) => toggleSheet(model) },
  { keys: ["Escape"], shown: "Esc", does: "close, or let go", run: (model) => letGo(model) },
];

export function pressCluster(model: ClusterModel, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  const target = event.target as HTMLElement | null;
  const writes = target?.closest("input, select, textarea");
  if (writes && event.key !== "Escape") return;
  const scrolls = target?.closest(".scroll") && event.key.startsWith("Arrow");
  const key = CLUSTER_KEYS.find((one) => one.keys.includes(event.key));
  if (!key || scrolls) return;
  event.preventDefault();
  key.run(model, event);
}

function links(): HTMLElement[] {
  return [...document.querySelectorAll<HTMLElement>(".wnode .name")];
}

function step(_: KeyboardEvent, by: number): void {
  const all = links();
  const at = all.indexOf(document.activeElement as HTMLElement);
  const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
  next?.focus();
  next?.closest(".wnode")?.scrollIntoView({ block: "nearest" });
}

function nextMeasure(model: ClusterModel, event: KeyboardEvent): void {
  const all = model.wall.value?.measures ?? [];
  const at = all.findIndex((one) => one.id === model.view.measure);
  const next = all[(at + (event.shiftKey ? all.length - 1 : 1)) % Math.max(all.length, 1)];
  if (next) model.change({ measure: next.id });
}

/** The first node that is marked stands on the left; the second opens the comparison. */
function mark(model: ClusterModel): void {
  const node = (document.activeElement as HTMLElement | null)?.closest<HTMLElement>(".wnode")?.dataset["node"];
  if (!node) return model.change({ tab: "compare" });
  if (!model.view.left || model.view.right) return model.change({ left: node, right: "" });
  return model.change({ right: node, tab: "compare" });
}

function focusOn(id: string): void {
  document.getElementById(id)?.focus();
}

function toggleSheet(model: ClusterModel): void {
  model.sheet = !model.sheet;
  model.changed.send();
}

function letGo(model: ClusterModel): void {
  const active = document.activeElement as HTMLElement | null;
  if (model.sheet) return toggleSheet(model);
  if (active?.closest("input")) return active.blur();
  model.point(null, "");
}
