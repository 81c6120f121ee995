/**
 * What the page knows and does: the view (the URL), the answers, and the actions
 * that buttons, keys and charts share. Components draw it; charts listen to the
 * window and the cursor directly, because those move with the mouse.
 */

import { Failure, isLeft, type Source } from "./api";
import { Palette } from "./colour";
import { readDashboard } from "./dashboard";
import { collect, isEvent, spanOf, urgency, type Found } from "./findings";
import { append } from "./series";
import { Signal } from "./signal";
import { clamp, isSpan, resolve, shift, zoom, type Range, type Span } from "./time";
import type { Container, Containers, Events, Filters, Instance, LivePoints, Metric, Study, StudyAnswer, Summary, Timeseries } from "./types";
import { decode, EMPTY, encode, panelKey, PANELS_AT_MOST, type PanelChoice, type View } from "./view";

export interface Trouble {
  failure: Failure;
  since: number;
  /** When it is tried again by itself; 0 when it is not. */
  againAt: number;
}

/** One answer of the server: what came, what failed, what is on its way. */
export interface Slot<T> {
  key: string;
  value: T | null;
  trouble: Trouble | null;
  loadingSince: number;
}

export interface Panel {
  choice: PanelChoice;
  key: string;
  slot: Slot<Timeseries>;
  studies: Slot<StudyAnswer>;
  found: Found[];
  /** Counts changes of the columns, for the chart. */
  drawn: number;
}

export type LiveState = "archive" | "live" | "paused" | "lost" | "connecting";

/** What may stand in the first view, and the metric that says whether it was measured. */
interface Candidate {
  needs: string;
  node?: string;
}

// Of each row the first that was measured: a container's figure, else the node's.
const FIRST_PANELS: Candidate[][] = [
  [{ needs: "cpu" }, { needs: "cpu.load_1m", node: "cpu" }],
  [{ needs: "memory" }, { needs: "memory.MemAvailable", node: "memory" }],
  [{ needs: "pressure_cpu" }, { needs: "pressure_memory" }, { needs: "pressure_io" }, { needs: "pressure.cpu.some.total", node: "pressure_cpu" }],
  [{ needs: "gpu_utilization" }, { needs: "gpu.utilization" }],
];
/** So long the first panel has the server for itself. */
const ALONE_MILLISECONDS = 700;
const SORTS = ["cpu", "memory", "pressure_memory", "pressure_cpu", "cpu_throttled", "memory_limit_share", "disk_write", "threads", "oom_kills"];
const LIVE_SECONDS = 900;
const ARCHIVE_SECONDS = 3600;
const RETRY_SECONDS = [2, 4, 8, 15, 30];
const REFRESH_SECONDS = 30;
const LIST_MOST = 300;

export function emptySlot<T>(): Slot<T> {
  return { key: "", value: null, trouble: null, loadingSince: 0 };
}

export class Model {
  view: View = EMPTY;
  readonly instance = emptySlot<Instance>();
  readonly summary = emptySlot<Summary>();
  readonly containers = emptySlot<Containers>();
  readonly events = emptySlot<Events>();
  readonly overview = emptySlot<Timeseries>();
  readonly filters = emptySlot<Filters>();
  metrics: Metric[] = [];
  studies: Study[] = [];
  panels: Panel[] = [];
  notice = "";
  noticeIsHarm = false;
  sheet: "" | "help" | "export" | "picker" | "list" = "";
  lag: number | null = null;
  liveState: LiveState = "connecting";
  liveReason = "";
  isolated = "";
  dashboardName = "";
  /** The picker changes the focused panel instead of adding one. */
  replacing = false;

  readonly changed = new Signal<void>();
  readonly windowMoved = new Signal<Span>();
  readonly cursorMoved = new Signal<number | null>();
  cursor: number | null = null;
  readonly palette: Palette;

  private newest = 0;
  private preview: Span | null = null;
  private readonly stops = new Map<string, AbortController>();
  private readonly timers = new Map<string, number>();
  private readonly tries = new Map<string, number>();
  private closeLive: () => void = () => undefined;
  private liveKey = "";
  /** Of the plotting area, in pixels. */
  width: number;
  private askedWidth: number;
  private lastPoint = 0;
  private coloured = false;
  private begun = false;

  constructor(
    readonly source: Source,
    private readonly page: Window = window,
  ) {
    // As wide as the panels will be, so that the first answer is the right one.
    this.width = page.innerWidth > 980 ? page.innerWidth - 590 : Math.max(page.innerWidth - 75, 100);
    this.askedWidth = Math.round(this.width / 100) * 100 || 100;
    const order = readOrder(page);
    this.palette = new Palette(order);
    this.coloured = order.length > 0;
  }

  // ---- start -------------------------------------------------------------

  start(): void {
    this.readUrl();
    this.page.addEventListener("popstate", () => this.follow());
    this.page.addEventListener("hashchange", () => this.follow());
    this.page.setInterval(() => this.beat(), 1000);
    this.open();
  }

  /** The first questions; everything else follows from their answers. */
  open(): void {
    const all = (signal: AbortSignal): Promise<Instance> =>
      Promise.all([
        this.source.instance(signal),
        this.source.metrics(signal),
        this.source.studies(signal),
      ]).then(([instance, metrics, studies]) => {
        this.metrics = metrics;
        this.studies = studies;
        return instance;
      });
    this.load("instance", `instance ${this.view.node}`, this.instance, all, (instance) => {
      this.newest = instance.to ?? 0;
      this.lag = instance.lag_seconds;
      this.liveState = instance.live ? "live" : "archive";
      this.refresh();
    });
    this.load("filters", `filters ${this.view.node}`, this.filters, (signal) => this.source.filters(signal));
  }

  private readUrl(): void {
    const { view, dashboard, rest } = decode(this.page.location.hash);
    this.view = view;
    if (!dashboard) return;
    readDashboard(dashboard, rest, this.page.location.origin, (url) => fetchJson(url))
      .then(({ name, change }) => {
        this.dashboardName = name;
        this.change(change, false);
      })
      .catch((error: unknown) => this.say(`This dashboard was not used: ${error instanceof Error ? error.message : String(error)}`, true));
  }

  /** Back, forward, or a hash typed by hand. */
  private follow(): void {
    const { view } = decode(this.page.location.hash);
    if (encode(view) === encode(this.view)) return;
    const other = view.node !== this.view.node;
    this.view = view;
    this.preview = null;
    if (other) this.open();
    this.refresh();
    this.moved();
  }

  // ---- the view ------------------------------------------------------------

  change(part: Partial<View>, push = true): void {
    const before = encode(this.view);
    this.view = { ...this.view, ...part };
    const after = encode(this.view);
    if (before !== after) this.writeUrl(push);
    this.refresh();
    this.emit();
  }

  private writeUrl(push: boolean): void {
    const address = `#${encode(this.view)}`;
    const depth = (this.page.history.state as { depth?: number } | null)?.depth ?? 0;
    if (push) this.page.history.pushState({ depth: depth + 1 }, "", address);
    else this.page.history.replaceState({ depth }, "", address);
  }

  /** Backspace: the view before this one. */
  back(): void {
    const depth = (this.page.history.state as { depth?: number } | null)?.depth ?? 0;
    if (depth > 0) this.page.history.back();
    else this.say("This is where you began.");
  }

  get range(): Range {
    if (this.view.range) return this.view.range;
    // A file was made of one range, and shows it.
    if (this.source.offline) return { all: true };
    return { last: this.instance.value?.live ? LIVE_SECONDS : ARCHIVE_SECONDS };
  }

  get bounds(): Span {
    const instance = this.instance.value;
    const from = instance?.from ?? this.newest - ARCHIVE_SECONDS;
    return { from, to: Math.max(this.newest, from + 1) };
  }

  /** The window that is drawn: the choice, or where the mouse has dragged it so far. */
  get span(): Span {
    return this.preview ?? resolve(this.range, this.bounds.from, this.newest);
  }

  get isLive(): boolean {
    return !isSpan(this.range) && this.instance.value?.live === true;
  }

  /** While dragging: draws, asks nothing. */
  drag(span: Span): void {
    this.preview = span;
    this.moved();
  }

  settle(): void {
    if (!this.preview) return;
    const span = this.preview;
    this.preview = null;
    this.goTo(span);
  }

  goTo(range: Range, push = true): void {
    this.preview = null;
    const rounded = isSpan(range) ? { from: round(range.from), to: round(range.to) } : range;
    this.view = { ...this.view, range: rounded };
    this.writeUrl(push);
    this.moved();
    this.refresh();
    this.emit();
  }

  zoomBy(factor: number, at = this.cursor ?? (this.span.from + this.span.to) / 2): void {
    const longest = (this.bounds.to - this.bounds.from) * 1.5;
    this.drag(zoom(this.span, factor, at, longest));
    this.soon("settle", 250, () => this.settle());
  }

  panBy(share: number): void {
    const span = this.span;
    this.drag(clamp(shift(span, (span.to - span.from) * share), this.bounds));
    this.soon("settle", 250, () => this.settle());
  }

  reset(): void {
    this.view = { ...this.view, range: null };
    this.preview = null;
    this.writeUrl(true);
    this.moved();
    this.refresh();
    this.emit();
  }

  toggleLive(): void {
    if (!this.instance.value?.live) {
      this.say("There is no agent behind this page: it shows an archive.");
      return;
    }
    if (this.isLive) this.goTo({ ...this.span });
    else this.goTo({ last: LIVE_SECONDS });
  }

  setCursor(at: number | null): void {
    if (this.cursor === at) return;
    this.cursor = at;
    this.cursorMoved.send(at);
  }

  stepCursor(steps: number): void {
    const span = this.span;
    const panel = this.panels[this.view.focus] ?? this.panels[0];
    const bucket = panel?.slot.value?.bucket_seconds ?? (span.to - span.from) / 300;
    const step = Math.max(bucket, (span.to - span.from) / 300);
    const at = (this.cursor ?? (span.from + span.to) / 2) + steps * step;
    this.setCursor(Math.min(Math.max(at, span.from), span.to));
  }

  // ---- panels ----------------------------------------------------------------

  get choices(): PanelChoice[] {
    return this.view.panels ?? this.firstChoices();
  }

  private firstChoices(): PanelChoice[] {
    const choices: PanelChoice[] = [];
    for (const candidates of FIRST_PANELS) {
      const found = candidates.find((one) => this.metrics.some((metric) => metric.name === one.needs));
      const metric = this.metrics.find((one) => one.name === found?.needs);
      if (found && metric) choices.push(found.node ? { metric: found.node, scope: "node", title: "" } : choiceOf(metric));
    }
    if (choices.length === 0) choices.push(...this.metrics.slice(0, 3).map(choiceOf));
    return choices;
  }

  addPanel(metric: Metric): void {
    const choices = this.choices;
    const choice = choiceOf(metric);
    const there = choices.findIndex((one) => panelKey(one) === panelKey(choice));
    if (there >= 0) {
      this.change({ focus: there }, false);
      this.say(`${metric.name} is shown already, as panel ${there + 1}.`);
      return;
    }
    if (choices.length >= PANELS_AT_MOST) {
      this.say(
        `Five panels are the most: more than that and none can be read. Remove one first (x removes panel ${this.view.focus + 1}), then add ${metric.name}.`,
        true,
      );
      return;
    }
    this.change({ panels: [...choices, choice], focus: choices.length });
  }

  replacePanel(index: number, metric: Metric): void {
    const choices = this.choices;
    if (choices.some((one, place) => place !== index && panelKey(one) === panelKey(choiceOf(metric)))) {
      this.addPanel(metric);
      return;
    }
    this.change({ panels: choices.map((one, place) => (place === index ? choiceOf(metric) : one)), focus: index });
  }

  removePanel(index: number): void {
    const choices = this.choices;
    if (choices.length <= 1) {
      this.say("One panel stays: choose another metric for it instead.");
      return;
    }
    this.change({ panels: choices.filter((_, place) => place !== index), focus: Math.max(0, Math.min(this.view.focus, choices.length - 2)) });
  }

  movePanel(index: number, step: number): void {
    const choices = [...this.choices];
    const target = index + step;
    const moved = choices[index];
    if (!moved || target < 0 || target >= choices.length) return;
    choices.splice(index, 1);
    choices.splice(target, 0, moved);
    this.change({ panels: choices, focus: target });
  }

  focusPanel(index: number): void {
    if (index < this.choices.length) this.change({ focus: index }, false);
  }

  metricOf(choice: PanelChoice): Metric | undefined {
    return this.metrics.find((one) => one.name === choice.metric && (!choice.scope || one.scope === choice.scope));
  }

  /** What the list may be sorted by here. */
  get sorts(): string[] {
    const there = new Set(this.metrics.filter((metric) => metric.scope === "container").map((metric) => metric.name));
    return SORTS.filter((name) => there.has(name));
  }

  get sort(): string {
    return this.view.sort || this.sorts[0] || "cpu";
  }

  // ---- containers -------------------------------------------------------------

  toggleContainer(row: Container): void {
    const chosen = this.view.containers;
    const id = row.short_id;
    const lives = this.livesOf(row);
    const next = chosen.includes(id) ? chosen.filter((one) => !lives.includes(one)) : [...chosen.filter((one) => !lives.includes(one)), ...lives];
    if (next.length > 16) {
      this.say("Sixteen containers are the most in one picture. Remove one first.", true);
      return;
    }
    this.change({ containers: next });
  }

  /** A row stands for all lives of its container: the newest and the longest are drawn. */
  private livesOf(row: Container): string[] {
    const { from, to } = this.span;
    const seen = (one: Container): number => Math.min(one.last_seen, to) - Math.max(one.first_seen, from);
    const others = (this.containers.value?.containers ?? []).filter((one) => one !== row && one.name === row.name && one.namespace === row.namespace && seen(one) > 0.05 * (to - from));
    return [row, ...others.sort((a, b) => seen(b) - seen(a)).slice(0, 2)].map((one) => one.short_id);
  }

  /** Rows of the list: an earlier life is part of its container's row. */
  get rows(): Container[] {
    const newest = new Map<string, Container>();
    for (const row of this.containers.value?.containers ?? []) {
      const had = newest.get(`${row.namespace}/${row.name}`);
      if (!had || row.last_seen > had.last_seen) newest.set(`${row.namespace}/${row.name}`, row);
    }
    const kept = new Set(newest.values());
    return (this.containers.value?.containers ?? []).filter((row) => kept.has(row));
  }

  chooseContainers(ids: string[]): void {
    this.change({ containers: ids, hidden: [] });
  }

  isShown(series: { id: string; name: string }): boolean {
    return !this.view.hidden.includes(series.id.slice(0, 12)) && (!this.isolated || this.isolated === this.inkKey(series));
  }

  toggleSeries(id: string): void {
    const short = id.slice(0, 12);
    const hidden = this.view.hidden;
    this.change({ hidden: hidden.includes(short) ? hidden.filter((one) => one !== short) : [...hidden, short] }, false);
  }

  /** Click on a legend row: this series alone; once more: all of them again. */
  isolate(key: string): void {
    this.isolated = this.isolated === key ? "" : key;
    this.redraw();
    this.emit();
  }

  inkKey(series: { id: string; name: string }): string {
    // A container that was restarted has a new id and the old name.
    return series.name.includes("/") ? series.name : series.id;
  }

  // ---- findings ------------------------------------------------------------------

  get found(): Found[] {
    return this.panels.flatMap((panel) => panel.found).filter(isEvent).sort((a, b) => urgency(b) - urgency(a));
  }

  get chosenFinding(): Found | null {
    return this.view.finding ? (this.panels.flatMap((panel) => panel.found).find((one) => one.key === this.view.finding) ?? null) : null;
  }

  chooseFinding(found: Found): void {
    const index = this.panels.findIndex((panel) => panel.key === found.panel);
    const span = spanOf(found.finding, this.bounds);
    this.view = { ...this.view, finding: found.key, focus: Math.max(index, 0) };
    this.goTo(span);
    this.redraw();
  }

  runStudy(study: string): void {
    this.change({ study, drawer: "findings" });
  }

  // ---- loading ---------------------------------------------------------------------

  setWidth(pixels: number): void {
    this.width = Math.max(pixels, 100);
    // A drawer that opens is no reason to ask again; half a screen is.
    const share = this.width / this.askedWidth;
    if (share > 0.6 && share < 1.4) return;
    this.askedWidth = Math.round(this.width / 100) * 100 || 100;
    this.refresh();
  }

  /** Asks for whatever the view needs and does not have. Cheap when nothing changed. */
  refresh(): void {
    const instance = this.instance.value;
    if (!instance) {
      this.emit();
      return;
    }
    this.arrangePanels();
    if (instance.to === null) {
      this.emit();
      return;
    }
    const span = this.span;
    const live = this.isLive;
    // Live answers are renewed by the clock; fixed ones by their own range.
    const when = live ? `live ${JSON.stringify(this.range)} ${Math.floor(this.newest / REFRESH_SECONDS)}` : `${round(span.from)} ${round(span.to)}`;
    // Two pixels a point: the mean is calm, the band has the extremes.
    const points = Math.min(instance.limit.max_points, Math.round(this.askedWidth / 2));
    const view = this.view;
    // Somebody waits for the first picture; what stands beside it may come a moment later.
    for (const panel of this.begun ? this.panels : this.panels.slice(0, 1)) {
      const asked = { metric: panel.choice.metric, scope: panel.choice.scope, containers: view.containers, span, points };
      const key = JSON.stringify([view.node, asked.containers, points, when]);
      this.load(`panel ${panel.key}`, key, panel.slot, (signal) => this.source.timeseries(asked, signal), () => {
        panel.drawn += 1;
        this.rememberColours(panel);
        this.begin();
        this.soon("listen", 100, () => this.listen());
        this.soon("studies", live ? 50 : 350, () => this.study());
      });
    }
    if (!this.begun) {
      this.soon("begin", ALONE_MILLISECONDS, () => this.begin());
      this.emit();
      return;
    }
    const listed = { metric: this.sort, namespace: view.namespace, qos: view.qos, labels: view.labels, search: "", span, limit: LIST_MOST };
    this.load("containers", JSON.stringify([view.node, this.sort, view.namespace, view.qos, view.labels, when]), this.containers, (signal) => this.source.containers(listed, signal));
    this.load("summary", `${view.node} ${when}`, this.summary, (signal) => this.source.summary(span, signal));
    this.load("events", `${view.node} ${when}`, this.events, (signal) => this.source.events(span, signal));
    const first = this.panels[0];
    if (first) {
      const all = this.bounds;
      const asked = { metric: first.choice.metric, scope: first.choice.scope, containers: view.containers, span: all, points: 300 };
      const key = JSON.stringify([view.node, first.key, view.containers, round(all.from), Math.floor(all.to / 300)]);
      this.load("overview", key, this.overview, (signal) => this.source.timeseries(asked, signal));
    }
    if (!live) this.listen();
    this.emit();
  }

  /** The first panel is there, or takes too long: everything else is asked for. */
  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.refresh();
  }

  retry(slot: Slot<unknown>): void {
    slot.key = "";
    slot.trouble = null;
    this.tries.clear();
    if (slot === this.instance) this.open();
    else this.refresh();
  }

  private arrangePanels(): void {
    const had = new Map(this.panels.map((panel) => [panel.key, panel]));
    this.panels = this.choices.map((choice) => {
      const key = panelKey(choice);
      const panel = had.get(key);
      had.delete(key);
      if (panel) return Object.assign(panel, { choice });
      return { choice, key, slot: emptySlot<Timeseries>(), studies: emptySlot<StudyAnswer>(), found: [], drawn: 0 };
    });
    for (const key of had.keys()) {
      this.stops.get(`panel ${key}`)?.abort();
      this.stops.get(`study ${key}`)?.abort();
    }
  }

  private load<T>(name: string, key: string, slot: Slot<T>, ask: (signal: AbortSignal) => Promise<T>, then?: (value: T) => void): void {
    if (slot.key === key) return;
    slot.key = key;
    this.stops.get(name)?.abort();
    const stop = new AbortController();
    this.stops.set(name, stop);
    slot.loadingSince = now();
    ask(stop.signal).then(
      (value) => {
        if (stop.signal.aborted) return;
        slot.value = value;
        slot.trouble = null;
        slot.loadingSince = 0;
        this.tries.delete(name);
        then?.(value);
        this.emit();
      },
      (error: unknown) => {
        if (stop.signal.aborted || isLeft(error)) return;
        const failure = error instanceof Failure ? error : new Failure("this answer could not be read", String(error), "", false);
        const tried = this.tries.get(name) ?? 0;
        this.tries.set(name, tried + 1);
        const wait = RETRY_SECONDS[Math.min(tried, RETRY_SECONDS.length - 1)] ?? 30;
        slot.loadingSince = 0;
        slot.trouble = { failure, since: slot.trouble?.since ?? now(), againAt: failure.again ? now() + wait : 0 };
        if (failure.again) {
          this.soon(`again ${name}`, wait * 1000, () => {
            if (slot.key !== key) return;
            slot.key = "";
            if (name === "instance") this.open();
            else this.refresh();
          });
        }
        this.emit();
      },
    );
  }

  /** One panel after the other, when all are drawn: a study costs more than a picture. */
  private study(): void {
    const live = this.isLive;
    const span = this.span;
    for (const panel of this.panels) {
      const answer = panel.slot.value;
      if (!answer || panel.slot.loadingSince) continue;
      const when = live ? `live ${Math.floor(this.newest / 60)}` : `${round(span.from)} ${round(span.to)}`;
      const ids = answer.scope === "container" || panel.choice.scope === "" ? answer.series.map((series) => series.id) : [];
      const key = JSON.stringify([this.view.study, this.view.node, ids, when]);
      if (panel.studies.key === key) continue;
      const asked = { study: this.view.study, metric: panel.choice.metric, scope: panel.choice.scope, containers: ids.slice(0, 16), span };
      this.load(`study ${panel.key}`, key, panel.studies, (signal) => this.source.study(asked, signal), (value) => {
        panel.found = collect(panel.key, value, panel.slot.value);
        panel.drawn += 1;
        this.soon("studies", 10, () => this.study());
      });
      return;
    }
  }

  studyAgain(): void {
    this.soon("studies", 10, () => this.study());
  }

  // ---- live --------------------------------------------------------------------------

  private listen(): void {
    const wanted = this.isLive && !this.source.offline;
    const loaded = this.panels.filter((panel) => panel.slot.value);
    const ids = [...new Set(loaded.flatMap((panel) => (panel.choice.scope ? [] : (panel.slot.value?.series.map((one) => one.id) ?? []))))];
    const metrics = loaded.map((panel) => panel.choice.metric);
    const key = wanted && metrics.length ? JSON.stringify([metrics, ids, this.view.node]) : "";
    if (key === this.liveKey) return;
    this.liveKey = key;
    this.closeLive();
    this.closeLive = () => undefined;
    if (!key) {
      this.liveState = this.instance.value?.live ? "paused" : "archive";
      return;
    }
    this.liveState = this.liveState === "live" ? "live" : "connecting";
    this.closeLive = this.source.live({ metrics, containers: ids }, {
      points: (points) => this.takePoints(points),
      status: (status) => {
        this.liveState = status.live ? "live" : "lost";
        this.liveReason = status.reason ?? "";
        this.lag = status.lag_seconds ?? this.lag;
        this.emit();
      },
      lost: () => {
        this.liveState = "lost";
        this.liveReason = "the connection to the viewer broke; trying again";
        this.emit();
      },
    });
  }

  private takePoints(points: LivePoints): void {
    this.lag = points.lag_seconds;
    this.lastPoint = now();
    this.liveState = "live";
    this.liveReason = "";
    this.newest = Math.max(this.newest, points.at);
    const keepFrom = this.span.from - 5;
    for (const panel of this.panels) {
      const values = points.panels[panel.choice.metric];
      if (values && panel.slot.value && append(panel.slot.value, points.at, values, keepFrom)) panel.drawn += 1;
    }
    if (this.isLive) this.moved();
    this.refresh();
  }

  /** Once a second: ages grow, and a live tail that fell silent says so. */
  private beat(): void {
    if (this.liveState === "live" && this.isLive && this.lastPoint && now() - this.lastPoint > 10) {
      this.liveState = "lost";
      this.liveReason = "no sample came for 10 s";
    }
    const waits = [this.instance, this.containers, ...this.panels.map((panel) => panel.slot)];
    if (this.liveState === "lost" || waits.some((slot) => slot.loadingSince || slot.trouble)) this.emit();
  }

  get newestAge(): number {
    return Math.max(0, now() - this.newest);
  }

  // ---- small things ---------------------------------------------------------------------

  say(text: string, harm = false): void {
    this.notice = text;
    this.noticeIsHarm = harm;
    this.emit();
    this.soon("notice", 12_000, () => {
      this.notice = "";
      this.emit();
    });
  }

  openSheet(sheet: Model["sheet"]): void {
    this.sheet = sheet;
    this.emit();
  }

  redraw(): void {
    for (const panel of this.panels) panel.drawn += 1;
    this.moved();
  }

  private rememberColours(panel: Panel): void {
    // Answers come in any order; colours are given in the order of the panels.
    if (!this.coloured) {
      this.palette.clear();
      for (const one of this.panels) one.drawn += 1;
    }
    for (const one of this.coloured ? [panel] : this.panels) {
      for (const series of one.slot.value?.series ?? []) this.palette.ink(this.inkKey(series));
    }
    this.coloured ||= this.panels.every((one) => one.slot.value ?? one.slot.trouble);
    try {
      this.page.sessionStorage.setItem("nodescope-colours", JSON.stringify(this.palette.entries().slice(-500)));
    } catch {
      // A page from disk may have no storage; the colours then hold for this visit.
    }
  }

  private moved(): void {
    this.windowMoved.send(this.span);
  }

  private emit(): void {
    this.changed.send();
  }

  private soon(name: string, milliseconds: number, what: () => void): void {
    this.page.clearTimeout(this.timers.get(name));
    this.timers.set(name, this.page.setTimeout(what, milliseconds));
  }
}

export function choiceOf(metric: Metric): PanelChoice {
  return { metric: metric.name, scope: metric.scope === "container" ? "" : metric.scope, title: "" };
}

function round(at: number): number {
  return Math.round(at * 1000) / 1000;
}

export function now(): number {
  return Date.now() / 1000;
}

function readOrder(page: Window): [string, number][] {
  try {
    return JSON.parse(page.sessionStorage.getItem("nodescope-colours") ?? "[]") as [string, number][];
  } catch {
    return [];
  }
}

async function fetchJson(url: string): Promise<unknown> {
  const answer = await fetch(url, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer.json();
}
