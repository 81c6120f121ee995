/** The keyboard: one table, read by the handler and by the `?` sheet. */

import type { Model } from "./model";
import { nextTheme } from "./theme";
import { GROUPINGS } from "./view";

export interface Key {
  keys: readonly string[];
  shown: string;
  does: string;
  run(model: Model, event: KeyboardEvent): void;
}

export const KEYS: readonly Key[] = [
  { keys: ["/"], shown: "/", does: "search containers and metrics", run: () => focus("search") },
  { keys: ["ArrowLeft"], shown: "← Left", does: "move the cursor; with Shift pan", run: (model, event) => step(model, event, -1) },
  { keys: ["ArrowRight"], shown: "→ Right", does: "move the cursor; with Shift pan", run: (model, event) => step(model, event, 1) },
  { keys: ["+", "="], shown: "+", does: "zoom in at the cursor", run: (model) => model.time.zoomBy(0.6) },
  { keys: ["-", "_"], shown: "-", does: "zoom out", run: (model) => model.time.zoomBy(1 / 0.6) },
  { keys: ["0"], shown: "0", does: "reset the range", run: (model) => model.time.goTo(null) },
  { keys: ["Backspace"], shown: "Backspace", does: "the view before this one", run: (model) => goBack(model) },
  { keys: ["l"], shown: "l", does: "live or paused", run: (model) => model.toggleLive() },
  { keys: ["1", "2", "3", "4", "5", "6", "7", "8", "9"], shown: "1 - 9", does: "go to a panel", run: (model, event) => model.panels.focus(Number(event.key) - 1) },
  { keys: ["a"], shown: "a", does: "add a panel", run: (model) => model.openSheet("picker") },
  { keys: ["x"], shown: "x", does: "remove the panel", run: (model) => model.panels.remove(model.view.focus) },
  { keys: ["["], shown: "[ ]", does: "move the panel up or down", run: (model) => model.panels.move(model.view.focus, -1) },
  { keys: ["]"], shown: "", does: "", run: (model) => model.panels.move(model.view.focus, 1) },
  { keys: ["c"], shown: "c", does: "the container list", run: (model) => goToList(model) },
  { keys: ["s"], shown: "s", does: "studies", run: (model) => toggleDrawer(model, "studies") },
  { keys: ["f"], shown: "f", does: "findings", run: (model) => toggleDrawer(model, "findings") },
  { keys: ["w"], shown: "w", does: "what changed in this range; Alt-drag for a part of it", run: (model) => model.explain(model.time.span) },
  { keys: ["g"], shown: "g", does: "add up by namespace, workload, or not", run: (model) => nextGrouping(model) },
  { keys: ["o"], shown: "o", does: "the page of the container that is drawn alone", run: (model) => openPage(model) },
  { keys: ["d"], shown: "d", does: "from and to, as dates", run: (model) => model.openSheet("time") },
  { keys: ["v"], shown: "v", does: "saved views", run: (model) => model.openSheet("views") },
  { keys: ["n"], shown: "n", does: "next finding", run: (model) => nextFinding(model) },
  { keys: ["r"], shown: "r", does: "right-sizing", run: (model) => model.openSheet("rightsize") },
  { keys: ["e"], shown: "e", does: "export, copy as", run: (model) => model.openSheet("export") },
  { keys: ["t"], shown: "t", does: "light or dark: automatic, light, dark", run: (model) => model.address.change({ theme: nextTheme(model.view.theme) }, false) },
  { keys: ["u"], shown: "u", does: "UTC, or the time zone of this computer", run: (model) => model.address.change({ utc: !model.view.utc }, false) },
  { keys: ["?"], shown: "?", does: "this sheet", run: (model) => model.openSheet("help") },
  { keys: ["Escape"], shown: "Esc", does: "close, or let go", run: (model) => escape(model) },
];

export function press(model: Model, event: KeyboardEvent): void {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) return;
  // Letters typed into a field belong to it; an open sheet has keys of its own.
  const target = event.target instanceof Element ? event.target : null;
  const typing = target?.closest("input, select, textarea") !== null && target !== null;
  if ((typing && event.key !== "Escape") || document.querySelector("dialog[open]")) return;
  // A sheet is drawn a moment after its key: what a fast typist types into it must not open another.
  if (model.openedSheet && event.key !== "Escape") return;
  const row = KEYS.find((one) => one.keys.includes(event.key));
  if (!row) return;
  event.preventDefault();
  row.run(model, event);
}

function step(model: Model, event: KeyboardEvent, by: number): void {
  if (event.shiftKey) model.time.panBy(by * 0.2);
  else model.time.stepCursor(by, model.panels.focused?.slot.value?.bucket_seconds);
}

function nextGrouping(model: Model): void {
  const many = (model.data.instance.value?.nodes.length ?? 0) > 1;
  const all = GROUPINGS.filter((one) => one !== "node" || many);
  model.address.change({ by: all[(all.indexOf(model.view.by) + 1) % all.length] ?? "", containers: [], only: "", hidden: [] });
}

function openPage(model: Model): void {
  const [chosen, more] = model.view.containers;
  const one = model.view.only || (more ? "" : chosen);
  if (one && !one.includes(":")) model.openContainer({ short_id: one });
  else model.say("Choose one container first: its page has all its lives, limits and how it ended.");
}

function goBack(model: Model): void {
  if (!model.address.back()) model.say("This is where you began.");
}

function focus(id: string): void {
  document.getElementById(id)?.focus();
}

function toggleDrawer(model: Model, which: "studies" | "findings"): void {
  const open = model.view.drawer === which;
  model.address.change({ drawer: open ? "" : which }, false);
  if (!open) setTimeout(() => document.querySelector<HTMLElement>(which === "studies" ? ".study" : ".finding, .drawer .close")?.focus(), 30);
}

function goToList(model: Model): void {
  if (window.matchMedia("(max-width: 760px)").matches) {
    model.openSheet("list");
    setTimeout(() => focus("filter"), 30);
    return;
  }
  // Without a delay: the next key of a fast typist belongs to the filter. This key does not:
  // the caller has called preventDefault.
  focus("filter");
}

function nextFinding(model: Model): void {
  const all = model.panels.findings;
  if (all.length === 0) {
    model.say("Nothing was found in this range.");
    return;
  }
  const place = all.findIndex((one) => one.key === model.view.finding);
  const next = all[(place + 1) % all.length];
  if (next) model.panels.chooseFinding(next);
}

function escape(model: Model): void {
  const active = document.activeElement;
  if (active instanceof HTMLInputElement) {
    active.blur();
    return;
  }
  if (model.sheet) model.openSheet("");
  else if (model.view.only) model.selection.showAll();
  else if (model.view.finding) {
    model.address.change({ finding: "" }, false);
    model.panels.redraw();
  } else if (model.view.drawer) model.address.change({ drawer: "", why: null }, false);
  else if (model.time.cursor !== null) model.time.setCursor(null);
  else model.say("");
}
