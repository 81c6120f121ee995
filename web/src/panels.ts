/** The panels: which metrics are drawn, in which order and colours, and what the studies found in them. */

import type { Address } from "./address";
import type { Palette } from "./colour";
import type { Earlier } from "./earlier";
import { byUrgency, isEvent, spanOf, type FindingRow } from "./findings";
import { emptySlot, type Slot } from "./requests";
import type { Joined } from "./groups";
import type { HeatJson, MetricJson, StudyJson, TimeseriesJson } from "./types";
import { panelKey, PANELS_AT_MOST, type PanelChoice, type View } from "./view";
import type { TimeWindow } from "./time-window";

export interface Panel {
  choice: PanelChoice;
  key: string;
  slot: Slot<TimeseriesJson>;
  /** Of a heat map, instead of the slot. */
  heat: Slot<HeatJson>;
  /** How the series of the slot were joined. */
  joined: Joined;
  studies: Slot<StudyJson>;
  findings: FindingRow[];
  /** The same series earlier, where somebody compares. */
  earlier: Slot<TimeseriesJson>;
  /** The container that is shown alone, where the panel had to ask for it; empty otherwise. */
  alone: string;
  /** Counts changes of the columns, for the chart. */
  version: number;
}

/** Where a panel's answer is. */
export function slotOf(panel: Panel): Slot<unknown> {
  return isHeat(panel.choice) ? panel.heat : panel.slot;
}

export function isHeat(choice: PanelChoice): boolean {
  return choice.scope === HEAT;
}

export const HEAT = "heat";

/** A panel of the first view, and the metric that must have been measured for it. */
interface Candidate {
  needs: string;
  node?: string;
}

// The first view, one row a panel: the first of the row that was measured, of the containers or else of the node.
const FIRST_PANELS: Candidate[][] = [
  [{ needs: "cpu" }, { needs: "cpu.user", node: "cpu" }, { needs: "cpu.load_1m" }],
  [{ needs: "memory" }, { needs: "memory.MemAvailable", node: "memory" }],
  [{ needs: "pressure_cpu" }, { needs: "pressure_memory" }, { needs: "pressure_io" }, { needs: "pressure.cpu.some.total", node: "pressure_cpu" }],
  [{ needs: "gpu_utilization" }, { needs: "gpu.utilization" }],
];

export class Panels {
  list: Panel[] = [];
  /** All metrics there are, in the server's order. */
  metrics: MetricJson[] = [];

  constructor(
    private readonly address: Address,
    private readonly time: TimeWindow,
    readonly palette: Palette,
    private readonly say: (text: string, harm?: boolean) => void,
  ) {}

  get focused(): Panel | undefined {
    return this.list[this.address.view.focus] ?? this.list[0];
  }

  private get choices(): PanelChoice[] {
    return this.address.view.panels ?? firstChoices(this.metrics);
  }

  /** Makes the list what the view says; returns the keys of the panels that are gone. */
  arrange(): string[] {
    const had = new Map(this.list.map((panel) => [panel.key, panel]));
    this.list = this.choices.map((choice) => {
      const key = panelKey(choice);
      const panel = had.get(key);
      had.delete(key);
      if (panel) return Object.assign(panel, { choice });
      return { choice, key, slot: emptySlot<TimeseriesJson>(), heat: emptySlot<HeatJson>(), joined: "", studies: emptySlot<StudyJson>(), findings: [], earlier: emptySlot<TimeseriesJson>(), alone: "", version: 0 };
    });
    return [...had.keys()];
  }

  add(metric: MetricJson): void {
    this.addChoice(choiceOf(metric));
  }

  addChoice(choice: PanelChoice): void {
    const choices = this.choices;
    const there = choices.findIndex((one) => panelKey(one) === panelKey(choice));
    if (there >= 0) {
      this.address.change({ focus: there }, false);
      this.say(`${choice.metric} is shown already, as panel ${there + 1}.`);
    } else if (choices.length >= PANELS_AT_MOST) {
      const remove = `Remove one first (x removes panel ${this.address.view.focus + 1}), then add ${choice.metric}.`;
      this.say(`Twelve panels are the most: more than that and none can be read. ${remove}`, true);
    } else this.address.change({ panels: [...choices, choice], focus: choices.length });
  }

  /** The view with this metric among the panels and in focus: in the place of the focused one where there is no room. */
  with(metric: MetricJson): Partial<View> {
    const choices = this.choices;
    const there = choices.findIndex((one) => panelKey(one) === panelKey(choiceOf(metric)));
    if (there >= 0) return { focus: there };
    return { panels: [choiceOf(metric), ...choices].slice(0, PANELS_AT_MOST), focus: 0 };
  }

  replace(index: number, metric: MetricJson): void {
    const choices = this.choices;
    if (choices.some((one, place) => place !== index && panelKey(one) === panelKey(choiceOf(metric)))) this.add(metric);
    else this.address.change({ panels: choices.map((one, place) => (place === index ? choiceOf(metric) : one)), focus: index });
  }

  remove(index: number): void {
    const choices = this.choices;
    if (choices.length <= 1) {
      this.say("One panel stays: choose another metric for it instead.");
      return;
    }
    this.address.change({ panels: choices.filter((_, place) => place !== index), focus: Math.max(0, Math.min(this.address.view.focus, choices.length - 2)) });
  }

  move(index: number, step: number): void {
    const choices = [...this.choices];
    const target = index + step;
    const moved = choices[index];
    if (!moved || target < 0 || target >= choices.length) return;
    choices.splice(index, 1);
    choices.splice(target, 0, moved);
    this.address.change({ panels: choices, focus: target });
  }

  focus(index: number): void {
    if (index < this.choices.length) this.address.change({ focus: index }, false);
  }

  earlierOf(panel: Panel): Earlier | null {
    const { compare } = this.address.view;
    return compare && panel.earlier.value ? { answer: panel.earlier.value, seconds: compare } : null;
  }

  metricOf(choice: PanelChoice): MetricJson | undefined {
    return this.metrics.find((one) => one.name === choice.metric && (!choice.scope || isHeat(choice) || one.scope === choice.scope));
  }

  /** What the list of containers may be sorted by. */
  get sorts(): string[] {
    return this.metrics.filter((metric) => metric.plain && metric.scope === "container").map((metric) => metric.name);
  }

  get sort(): string {
    return this.address.view.sort || this.sorts[0] || "cpu";
  }

  // ---- findings ------------------------------------------------------------------

  get allFindings(): FindingRow[] {
    return this.list.flatMap((panel) => panel.findings);
  }

  /** The most urgent first, without summaries. */
  get findings(): FindingRow[] {
    return this.allFindings.filter(isEvent).sort(byUrgency);
  }

  get chosenFinding(): FindingRow | null {
    const key = this.address.view.finding;
    return key ? (this.allFindings.find((one) => one.key === key) ?? null) : null;
  }

  chooseFinding(row: FindingRow): void {
    const index = this.list.findIndex((panel) => panel.key === row.panel);
    this.time.goTo(spanOf(row.finding, this.time.bounds), { finding: row.key, focus: Math.max(index, 0) });
    this.redraw();
  }

  // ---- drawing -------------------------------------------------------------------

  redraw(): void {
    for (const panel of this.list) panel.version += 1;
    this.time.sendMoved();
  }

  /** Dashes tell apart what has one colour: they follow from all series that are drawn. */
  giveColours(): void {
    this.palette.arrange(this.list.flatMap((panel) => (isHeat(panel.choice) ? [] : panel.slot.value?.series ?? [])));
    for (const one of this.list) one.version += 1;
  }
}

function firstChoices(metrics: MetricJson[]): PanelChoice[] {
  const choices: PanelChoice[] = [];
  for (const candidates of FIRST_PANELS) {
    const found = candidates.find((one) => metrics.some((metric) => metric.name === one.needs));
    const metric = metrics.find((one) => one.name === found?.needs);
    if (found && metric) choices.push(found.node ? { metric: found.node, scope: "node", title: "" } : choiceOf(metric));
  }
  return choices.length ? choices : metrics.slice(0, 3).map(choiceOf);
}

function choiceOf(metric: MetricJson): PanelChoice {
  return { metric: metric.name, scope: metric.scope === "container" ? "" : metric.scope, title: "" };
}
