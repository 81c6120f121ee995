/** The keyboard: one table, read by the handler and by the `?` sheet. */

import type { Model } from "./model";
import { nextTheme } from "./theme";

export interface Key {
  keys: readonly string[];
  shown: string;
  does: string;
  run(model: Model, event: KeyboardEvent): void;
}

export const KEYS: readonly Key[] = [
  { keys: ["/"], shown: "/", does: "search containers and metrics", run: () => focus("search") },
  { keys: ["ArrowLeft"], shown: "← Left", does: "move the cursor; with Shift pan", run: (model, event) => (event.shiftKey ? model.panBy(-0.2) : model.stepCursor(-1)) },
  { keys: ["ArrowRight"], shown: "→ Right", does: "move the cursor; with Shift pan", run: (model, event) => (event.shiftKey ? model.panBy(0.2) : model.stepCursor(1)) },
  { keys: ["+", "="], shown: "+", does: "zoom in at the cursor", run: (model) => model.zoomBy(0.6) },
  { keys: ["-", "_"], shown: "-", does: "zoom out", run: (model) => model.zoomBy(1 / 0.6) },
  { keys: ["0"], shown: "0", does: "reset the range", run: (model) => model.reset() },
  { keys: ["Backspace"], shown: "Backspace", does: "the view before this one", run: (model) => model.back() },
  { keys: ["l"], shown: "l", does: "live or paused", run: (model) => model.toggleLive() },
  { keys: ["1", "2", "3", "4", "5"], shown: "1 - 5", does: "go to a panel", run: (model, event) => model.focusPanel(Number(event.key) - 1) },
  { keys: ["a"], shown: "a", does: "add a panel", run: (model) => model.openSheet("picker") },
  { keys: ["x"], shown: "x", does: "remove the panel", run: (model) => model.removePanel(model.view.focus) },
  { keys: ["["], shown: "[ ]", does: "move the panel up or down", run: (model) => model.movePanel(model.view.focus, -1) },
  { keys: ["]"], shown: "", does: "", run: (model) => model.movePanel(model.view.focus, 1) },
  { keys: ["c"], shown: "c", does: "the container list", run: (model) => goToList(model) },
  { keys: ["s"], shown: "s", does: "studies", run: (model) => toggleDrawer(model, "studies") },
  { keys: ["f"], shown: "f", does: "findings", run: (model) => toggleDrawer(model, "findings") },
  { keys: ["n"], shown: "n", does: "next finding", run: (model) => nextFinding(model) },
  { keys: ["e"], shown: "e", does: "export, copy as", run: (model) => model.openSheet("export") },
  { keys: ["t"], shown: "t", does: "theme: system, light, dark", run: (model) => model.change({ theme: nextTheme(model.view.theme) }, false) },
  { keys: ["u"], shown: "u", does: "UTC or local time", run: (model) => model.change({ utc: !model.view.utc }, false) },
  { keys: ["?"], shown: "?", does: "this sheet", run: (model) => model.openSheet("help") },
  { keys: ["Escape"], shown: "Esc", does: "close, or let go", run: (model) => escape(model) },
];

export function press(model: Model, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  // A field keeps its letters; an open sheet has its own keys.
  const target = event.target instanceof Element ? event.target : null;
  const typing = target?.closest("input, select, textarea") !== null && target !== null;
  if ((typing && event.key !== "Escape") || document.querySelector("dialog[open]")) return;
  const row = KEYS.find((one) => one.keys.includes(event.key));
  if (!row) return;
  event.preventDefault();
  row.run(model, event);
}

function focus(id: string): void {
  document.getElementById(id)?.focus();
}

function toggleDrawer(model: Model, which: "studies" | "findings"): void {
  const open = model.view.drawer === which;
  model.change({ drawer: open ? "" : which }, false);
  if (!open) setTimeout(() => document.querySelector<HTMLElement>(which === "studies" ? ".study" : ".finding, .drawer .close")?.focus(), 30);
}

function goToList(model: Model): void {
  if (window.matchMedia("(max-width: 760px)").matches) {
    model.openSheet("list");
    setTimeout(() => focus("filter"), 30);
    return;
  }
  // At once: the next key of a quick typist belongs to the filter. The key itself
  // must not, and is kept from it by the caller.
  focus("filter");
}

function nextFinding(model: Model): void {
  const all = model.found;
  if (all.length === 0) {
    model.say("Nothing was found in this range.");
    return;
  }
  const place = all.findIndex((one) => one.key === model.view.finding);
  const next = all[(place + 1) % all.length];
  if (next) model.chooseFinding(next);
}

function escape(model: Model): void {
  const active = document.activeElement;
  if (active instanceof HTMLInputElement) {
    active.blur();
    return;
  }
  if (model.sheet) model.openSheet("");
  else if (model.isolated) model.isolate(model.isolated);
  else if (model.view.finding) {
    model.change({ finding: "" }, false);
    model.redraw();
  } else if (model.view.drawer) model.change({ drawer: "" }, false);
  else if (model.cursor !== null) model.setCursor(null);
  else model.say("");
}
