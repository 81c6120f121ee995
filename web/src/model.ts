/** The page's parts, connected: address, time window, selection, panels, data and live stream; and what is shown over them. */

import { Address } from "./address";
import type { Source } from "./api";
import { Palette } from "./colour";
import { CardStream } from "./card-stream";
import { viewOfFinding, type Card } from "./cards";
import { cardsOf, viewOf } from "./incidents";
import { Data } from "./data";
import type { Joined } from "./groups";
import { Live } from "./live";
import { isHeat, Panels, slotOf, type Panel } from "./panels";
import type { OnPage } from "./overlay";
import { Selection } from "./selection";
import type { Telling } from "./sentence";
import { Signal } from "./signal";
import { Timers } from "./timers";
import { isOf } from "./series";
import type { Span } from "./time";
import type { ContainerJson, EventJson, IncidentJson, ShiftJson, TimeseriesJson } from "./types";
import { EMPTY, encode, type LinkedSheet, type View } from "./view";
import { round, TimeWindow } from "./time-window";

const NOTICE_MILLISECONDS = 12_000;
/** Around an event that a click goes to. */
const EVENT_SECONDS = 150;
const BEFORE_KILL_SECONDS = 420;
const AFTER_KILL_SECONDS = 150;
const CONTAINERS_DRAWN = 8;
/** On the page of a container, as far as they were measured. */
const PAGE_PANELS = ["memory", "cpu", "cpu_throttled", "pressure_cpu", "pressure_memory", "pressure_io", "processes", "threads", "network_receive", "network_transmit"];

export class Model {
  /** Something is to be drawn again; windows and cursors have signals of their own. */
  readonly changed = new Signal<void>();
  readonly address: Address;
  readonly time: TimeWindow;
  readonly selection: Selection;
  readonly panels: Panels;
  readonly data: Data;
  readonly live: Live;
  readonly cards: CardStream;
  notice = "";
  noticeIsHarm = false;
  sheet: "" | "help" | "export" | "picker" | "list" | "time" | "views" = "";
  /** The picker changes the focused panel instead of adding one. */
  replacing = false;
  /** Whether the tools of a narrow screen are shown. */
  menu = false;
  private readonly timers: Timers;

  constructor(
    readonly source: Source,
    private readonly page: Window = window,
  ) {
    const say = (text: string, harm?: boolean): void => this.say(text, harm);
    this.timers = new Timers(page);
    this.address = new Address(page);
    this.time = new TimeWindow(this.address, this.timers, source.offline);
    this.selection = new Selection(this.address, say);
    this.panels = new Panels(this.address, this.time, new Palette(), say);
    this.data = new Data(source, this.address, this.time, this.panels, this.timers, this.changed, page);
    this.live = new Live(source, this.address, this.time, this.panels, () => this.data.refresh());
    this.cards = new CardStream(source, this.address, this.time, this.timers, () => page.document.visibilityState !== "hidden", () => this.changed.send());
    this.address.changed.on((before) => {
      if (before.node !== this.view.node) this.data.open();
      if (before.range !== this.view.range) this.time.sendMoved();
      this.data.refresh();
    });
    this.data.opened.on((instance) => this.live.begin(instance));
    this.data.seriesChanged.on(() => this.live.listen());
    this.data.incidentsCame.on(() => this.openWorst());
    this.data.answered.on(() => this.cards.listen());
  }

  get view(): View {
    return this.address.view;
  }

  /** What lies over the page: a sheet of its own, or the one that the address names, once there are data. */
  get openedSheet(): Model["sheet"] | LinkedSheet {
    return this.sheet || (typeof this.data.instance.value?.to === "number" ? this.view.sheet : "");
  }

  start(): void {
    const { dashboard, variables, refused } = this.address.read();
    if (refused) this.say(refused, true);
    if (dashboard) this.useDashboard(dashboard, variables);
    this.page.addEventListener("popstate", () => this.address.follow());
    this.page.addEventListener("hashchange", () => this.address.follow());
    this.page.document.addEventListener("visibilitychange", () => this.cards.follow());
    this.page.setInterval(() => this.beat(), 1000);
    this.data.open();
  }

  private useDashboard(text: string, variables: Record<string, string>): void {
    // Few addresses name one: it is in a file of its own.
    import("./dashboard")
      .then(({ readDashboard }) => readDashboard(text, variables, this.page.location.origin, fetchJson))
      .then(({ change }) => this.address.change(change, false))
      .catch((error: unknown) => this.say(`This dashboard was not used: ${error instanceof Error ? error.message : String(error)}`, true));
  }

  /** Once a second: the ages that are shown grow. */
  private beat(): void {
    const { instance, containers, sizes } = this.data;
    this.cards.check();
    const waits = [instance, containers, sizes, ...this.panels.list.map(slotOf)];
    if (this.live.check() || waits.some((slot) => slot.loadingSince || slot.trouble)) this.changed.send();
  }

  toggleLive(): void {
    if (this.time.live) this.time.toggleLive();
    else this.say("There is no agent behind this page: it shows an archive.");
  }

  toggleMenu(): void {
    this.menu = !this.menu;
    this.changed.send();
  }

  toggleContainer(row: ContainerJson): void {
    this.selection.toggle(row);
  }

  /** Whether names need their node beside them. */
  get many(): boolean {
    return !this.view.node && (this.data.instance.value?.nodes.length ?? 0) > 1;
  }

  tellingOf(answer: TimeseriesJson, joined: Joined = ""): Telling {
    return { shown: this.selection.shownIn(answer), span: this.time.span, utc: this.view.utc, many: this.many && !joined, joined, filtered: this.data.isFiltered && !this.view.containers.length };
  }

  openIncident(incident: IncidentJson, push = true): void {
    this.address.change(viewOf(incident, this.panels.metrics, this.time.bounds, this.many), push);
    this.time.sendMoved();
  }

  openCard({ finding, incident }: Card): void {
    if (incident) this.openIncident(incident);
    if (!finding) return;
    if (incident) this.address.change({ incident: finding.id }, false);
    else {
      const rows = (this.data.containers.value?.containers ?? []).filter((row) => row.workload === finding.workload && (!finding.namespace || row.namespace === finding.namespace));
      const containers = rows.length ? rows.slice(0, CONTAINERS_DRAWN).map((row) => row.short_id) : finding.container_id ? [finding.container_id.slice(0, 12)] : [];
      this.address.change(viewOfFinding(finding, containers, this.panels.metrics, this.time.newest, this.many));
      this.time.sendMoved();
    }
  }

  /** Opens the drawer that says what changed in a span. */
  explain(span: Span): void {
    if (this.source.offline) this.say("This file has a few containers only. Open the data folder with nodescope viewer to see what changed.");
    else this.address.change({ why: { from: round(span.from), to: round(span.to) }, drawer: "why" });
    this.panels.redraw();
  }

  /** A change that was found: its container beside those that are drawn, its metric among the panels. */
  drawChange(one: ShiftJson): void {
    const metric = this.panels.metrics.find((each) => each.name === one.metric && each.scope === "container");
    const { containers } = this.view;
    const chosen = containers.some((word) => isOf({ id: one.container, name: one.name }, word)) ? containers : [...containers, one.container].slice(-CONTAINERS_DRAWN);
    this.address.change({ containers: chosen, only: "", hidden: [], by: "", ...(metric ? this.panels.with(metric) : {}) });
  }

  /** A container with all its lives, its limits, what it waits for, and how it ended. */
  openContainer(row: { short_id: string }): void {
    const known = (name: string): boolean => this.panels.metrics.some((metric) => metric.name === name && metric.scope === "container");
    const panels = PAGE_PANELS.filter(known).map((metric) => ({ metric, scope: "", title: "" }));
    this.address.change({ who: row.short_id, containers: [row.short_id], only: "", hidden: [], by: "", drawer: "", why: null, focus: 0, range: { all: true }, ...(panels.length ? { panels } : {}) });
    this.time.sendMoved();
  }

  closeContainer(): void {
    this.address.change({ who: "", containers: [], panels: null, range: null });
    this.time.sendMoved();
  }

  get pageRow(): ContainerJson | undefined {
    const { who } = this.view;
    return who ? this.data.containers.value?.containers.find((row) => isOf(row, who) || row.container === who) : undefined;
  }

  /** What is drawn on a panel of a container's page. */
  pageOf(panel: Panel): OnPage | null {
    if (!this.view.who || isHeat(panel.choice)) return null;
    const kills = (this.data.story.value?.events ?? []).filter((event) => event.kind === "oom").map((event) => event.at);
    const row = this.pageRow;
    const { metric } = panel.choice;
    const request = metric === "cpu" ? row?.cpu_request : metric.startsWith("memory") ? row?.memory_request : null;
    return { kills, request: request ?? null };
  }

  setThreshold(panel: Panel, value: number | null): void {
    const { [panel.key]: _, ...others } = this.view.thresholds;
    this.address.change({ thresholds: value === null ? others : { ...others, [panel.key]: value } }, false);
    this.panels.redraw();
  }

  /** Of a kill: what led to it and the life after it, with the limit; of anything else: the moment. */
  openEvent(worst: EventJson, bunch: readonly EventJson[]): void {
    if (worst.kind !== "oom") {
      const times = bunch.map((event) => event.at);
      this.time.goTo({ from: Math.min(...times) - EVENT_SECONDS, to: Math.max(...times) + EVENT_SECONDS });
      return;
    }
    const memory = this.panels.metrics.find((metric) => metric.name === "memory" && metric.scope === "container");
    const span = { from: worst.at - BEFORE_KILL_SECONDS, to: worst.at + AFTER_KILL_SECONDS };
    this.time.goTo(span, { containers: [worst.container.slice(0, 12)], only: "", hidden: [], ...(memory ? this.panels.with(memory) : {}) });
  }

  /** An archive opens on its worst incident, unless somebody chose something meanwhile. */
  private openWorst(): void {
    const { theme, utc, node } = this.view;
    const isUntouched = encode(this.view) === encode({ ...EMPTY, theme, utc, node });
    const [worst] = cardsOf(this.data.incidents.value);
    if (worst && isUntouched && !this.time.live && !this.source.offline) this.openIncident(worst, false);
  }

  say(text: string, harm = false): void {
    this.notice = text;
    this.noticeIsHarm = harm;
    this.changed.send();
    this.timers.soon("notice", NOTICE_MILLISECONDS, () => {
      this.notice = "";
      this.changed.send();
    });
  }

  openSheet(sheet: Model["sheet"] | LinkedSheet): void {
    const linked = sheet === "rightsize" ? sheet : "";
    this.sheet = sheet === "rightsize" ? "" : sheet;
    if (this.view.sheet !== linked) this.address.change({ sheet: linked }, false);
    this.changed.send();
  }
}

async function fetchJson(url: string): Promise<unknown> {
  const answer = await fetch(url, { headers: { accept: "application/json" } });
  if (!answer.ok) throw new Error(`${url} answered ${answer.status}`);
  return answer.json();
}
