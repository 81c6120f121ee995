/** The data of the page: which answers the view needs, and when they are requested. */

import { NO_FILTER, type ContainerFilter, type Source } from "./api";
import type { Address } from "./address";
import { collect } from "./findings";
import { seriesOf, SWEPT, type Joined } from "./groups";
import { isHeat, slotOf, type Panel, type Panels } from "./panels";
import { emptySlot, Requests, type Slot } from "./requests";
import { isOf, shortId, takeOver } from "./series";
import { Signal } from "./signal";
import { shift } from "./time";
import type { Timers } from "./timers";
import type { ContainersJson, EventsJson, FiltersJson, IncidentsJson, InstanceJson, RightsizeJson, StudyRowJson, SummaryJson, TimeseriesJson } from "./types";
import { round, type TimeWindow } from "./time-window";

/** For this long the first panel has the server for itself. */
const ALONE_MILLISECONDS = 700;
/** Live answers are renewed this often. */
const REFRESH_SECONDS = 30;
const STUDY_SECONDS = 60;
const SIZES_SECONDS = 600;
const OVERVIEW_SECONDS = 300;
const OVERVIEW_POINTS = 300;
const CONTAINERS_AT_MOST = 300;
/** Of a heat map and of a sum: a sweep of all containers has coarse steps. */
const SWEPT_POINTS = 240;
const GROUPS_SECONDS = 5;
const STUDIED_AT_MOST = 16;
/** Typing comes in bursts: what depends on the text is requested this long after the last letter. */
const TYPED_MILLISECONDS = 300;
const INCIDENT_SECONDS = 300;
/** Of a live node; an archive is looked at as a whole. */
const INCIDENTS_LIVE_SECONDS = 3 * 3600;

export class Data {
  readonly instance = emptySlot<InstanceJson>();
  readonly summary = emptySlot<SummaryJson>();
  readonly containers = emptySlot<ContainersJson>();
  readonly events = emptySlot<EventsJson>();
  readonly overview = emptySlot<TimeseriesJson>();
  readonly filters = emptySlot<FiltersJson>();
  readonly incidents = emptySlot<IncidentsJson>();
  /** Requested while its sheet is open. */
  readonly sizes = emptySlot<RightsizeJson>();
  /** Of the container whose page is shown: its events over everything there is. */
  readonly story = emptySlot<EventsJson>();
  studies: StudyRowJson[] = [];
  /** The first answer takes a second longer: the viewer has rested. */
  starting = false;
  readonly opened = new Signal<InstanceJson>();
  /** The series that are drawn may be others: the live stream must follow. */
  readonly seriesChanged = new Signal<void>();
  readonly incidentsCame = new Signal<IncidentsJson>();
  /** Panels, tiles and lists are there: what costs more may begin. */
  readonly answered = new Signal<void>();
  /** Of the plotting area, in pixels. */
  width: number;
  private requestedWidth: number;
  private begun = false;
  /** The text of the filter that answers were requested with. */
  private typed: string | null = null;
  readonly requests: Requests;

  constructor(
    private readonly source: Source,
    private readonly address: Address,
    private readonly time: TimeWindow,
    private readonly panels: Panels,
    private readonly timers: Timers,
    private readonly changed: Signal<void>,
    page: Window,
  ) {
    this.requests = new Requests(timers, changed, (slot) => this.requestAgain(slot), () => this.goOn());
    // As wide as the panels will be, so that the first answer is the right one.
    this.width = page.innerWidth > 980 ? page.innerWidth - 590 : Math.max(page.innerWidth - 75, 100);
    this.requestedWidth = roundWidth(this.width);
  }

  /** The first requests; all others follow from their answers. */
  open(): void {
    const { node } = this.address.view;
    // What fits on another node must not be taken for an answer about this one.
    this.requests.cancel("sizes");
    Object.assign(this.sizes, emptySlot());
    this.requests.load("instance", `instance ${node}`, this.instance, (signal) => this.requestInstance(signal), (instance) => {
      Object.assign(this.time, { first: instance.from, newest: instance.to ?? 0, live: instance.live });
      this.opened.send(instance);
      this.refresh();
    });
    this.requests.load("filters", `filters ${node}`, this.filters, (signal) => this.source.filters(signal));
    void this.lookForStart();
  }

  private async lookForStart(): Promise<void> {
    // Where nothing answers, the other requests tell it.
    this.starting = await this.source.isStarting().catch(() => false);
    this.changed.send();
  }

  private async requestInstance(signal: AbortSignal): Promise<InstanceJson> {
    const [instance, metrics, studies] = await Promise.all([this.source.instance(signal), this.source.metrics(signal), this.source.studies(signal)]);
    this.panels.metrics = metrics;
    this.studies = studies;
    return instance;
  }

  private requestAgain(slot: Slot<unknown>): void {
    if (slot === this.instance) this.open();
    else this.refresh();
    this.studySoon();
  }

  setWidth(pixels: number): void {
    this.width = Math.max(pixels, 100);
    // A drawer that opens is no reason for a new request; half a screen is.
    const share = this.width / this.requestedWidth;
    if (share > 0.6 && share < 1.4) return;
    this.requestedWidth = roundWidth(this.width);
    this.refresh();
  }

  /** Requests what the view needs and does not have. Cheap when nothing changed. */
  refresh(): void {
    if (this.instance.value) this.follow(this.instance.value);
    this.changed.send();
  }

  private follow(instance: InstanceJson): void {
    for (const key of this.panels.arrange()) {
      this.requests.cancel(`panel ${key}`);
      this.requests.cancel(`study ${key}`);
      this.requests.cancel(`earlier ${key}`);
    }
    if (instance.to === null) return;
    // Two pixels a point: the mean is calm, the band has the extremes.
    const points = Math.min(instance.limit.max_points, Math.round(this.requestedWidth / 2));
    // Somebody waits for the first picture; what stands beside it may come a moment later.
    for (const panel of this.begun ? this.panels.list : this.panels.list.slice(0, 1)) this.loadPanel(panel, points);
    if (!this.begun) {
      this.timers.soon("begin", ALONE_MILLISECONDS, () => this.begin());
      return;
    }
    this.loadLists();
    this.loadSizes();
    this.loadStory();
    // What costs more waits for what somebody reads first.
    if (this.isAnswered) this.answered.send();
    if (this.isAnswered) this.loadOverview();
    if (this.isAnswered) for (const panel of this.panels.list) this.loadEarlier(panel, points);
    if (this.isAnswered && this.overview.key && !this.overview.loadingSince) this.loadIncidents();
    if (!this.time.isLive) this.seriesChanged.send();
  }

  /** The first panel is there, or takes too long: everything else is requested. */
  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.refresh();
  }

  /** Whether panels, tiles, list and events have their answers. */
  private get isAnswered(): boolean {
    const slots: Slot<unknown>[] = [...this.panels.list.map(slotOf), this.containers, this.summary, this.events];
    return slots.every((slot) => slot.key && !slot.loadingSince);
  }

  /** The filter as it is requested: a text that is being typed is not. */
  private get filter(): ContainerFilter {
    const { namespace, qos, labels, search } = this.address.view;
    this.typed ??= search;
    if (this.typed !== search) {
      this.timers.soon("typed", TYPED_MILLISECONDS, () => {
        this.typed = this.address.view.search;
        this.refresh();
      });
    }
    return { namespace, qos, labels, search: this.typed };
  }

  get isFiltered(): boolean {
    const { namespace, qos, labels, search } = this.address.view;
    return Boolean(namespace || qos || labels || search);
  }

  /** Part of a key: live answers are renewed by the clock, fixed ones by their own range. */
  private when(seconds: number): string {
    const { range, span, newest, isLive } = this.time;
    return isLive ? `live ${JSON.stringify(range)} ${Math.floor(newest / seconds)}` : `${round(span.from)} ${round(span.to)}`;
  }

  private loadPanel(panel: Panel, points: number): void {
    if (isHeat(panel.choice)) return this.loadHeat(panel);
    const isGrouped = Boolean(this.address.view.by) && !panel.choice.scope && SWEPT.includes(panel.choice.metric) && !this.source.offline;
    if (isGrouped) return this.loadGroups(panel);
    const { node } = this.address.view;
    const { filter } = this;
    const containers = this.containersOf(panel);
    const query = { ...panel.choice, containers, filter, span: this.time.span, points };
    const key = JSON.stringify([node, containers, filter, points, this.when(REFRESH_SECONDS)]);
    const { isLive } = this.time;
    const request = async (signal: AbortSignal): Promise<TimeseriesJson> => {
      const answer = await this.source.timeseries(query, signal);
      if (isLive && panel.slot.value && !panel.joined) takeOver(answer, panel.slot.value);
      return answer;
    };
    this.requests.load(`panel ${panel.key}`, key, panel.slot, request, () => {
      panel.joined = "";
      this.panels.giveColours();
      this.begin();
      this.goOn();
      this.timers.soon("listen", 100, () => this.seriesChanged.send());
      this.timers.soon("studies", this.time.isLive ? 50 : 350, () => this.study());
    });
  }

  /** Sums are renewed as a whole: the live stream has single containers. */
  private loadGroups(panel: Panel): void {
    const { node, by } = this.address.view;
    const { filter } = this;
    const { span } = this.time;
    const { metric } = panel.choice;
    let joined: Joined = "";
    const key = JSON.stringify([node, by, filter, this.when(this.paceOf(GROUPS_SECONDS))]);
    const request = async (signal: AbortSignal): Promise<TimeseriesJson> => {
      const answer = await this.source.groups({ metric, group: by, filter, span, points: SWEPT_POINTS }, signal);
      joined = answer.join;
      return seriesOf(answer, span);
    };
    this.requests.load(`panel ${panel.key}`, key, panel.slot, request, () => {
      panel.joined = joined;
      panel.findings = [];
      panel.studies.key = "";
      this.panels.giveColours();
      this.begin();
      this.goOn();
    });
  }

  /** A sweep of all containers is made again when it would have one more step. */
  private paceOf(least: number): number {
    const { from, to } = this.time.span;
    return Math.max(least, Math.round((to - from) / SWEPT_POINTS));
  }

  private loadHeat(panel: Panel): void {
    const { node } = this.address.view;
    const { filter } = this;
    const { span } = this.time;
    const key = JSON.stringify([node, filter, this.when(this.paceOf(REFRESH_SECONDS))]);
    const query = { metric: panel.choice.metric, filter, span, points: SWEPT_POINTS };
    this.requests.load(`panel ${panel.key}`, key, panel.heat, (signal) => this.source.heat(query, signal), () => {
      panel.version += 1;
      this.begin();
      this.goOn();
    });
  }

  /** The series that are drawn, so much before, where somebody compares. */
  private loadEarlier(panel: Panel, points: number): void {
    const { node, compare } = this.address.view;
    const answer = panel.slot.value;
    if (!compare || !answer || panel.joined || isHeat(panel.choice)) {
      Object.assign(panel.earlier, emptySlot());
      return;
    }
    const containers = panel.choice.scope || answer.scope !== "container" ? [] : answer.series.map((series) => shortId(series.id));
    const query = { ...panel.choice, containers, filter: NO_FILTER, span: shift(this.time.span, -compare), points };
    const key = JSON.stringify([node, compare, containers, points, this.when(REFRESH_SECONDS)]);
    this.requests.load(`earlier ${panel.key}`, key, panel.earlier, (signal) => this.source.timeseries(query, signal), () => {
      panel.version += 1;
    });
  }

  /** Those that were chosen; a panel that lacks the one that is shown alone asks for it. */
  private containersOf(panel: Panel): string[] {
    const { containers, only } = this.address.view;
    if (panel.alone !== only && !panel.joined) {
      const isThere = panel.slot.value?.series.some((series) => isOf(series, only)) ?? false;
      panel.alone = only && !isThere && panel.slot.value && !panel.choice.scope && !only.includes(":") ? only : "";
    }
    return panel.alone ? [panel.alone] : containers;
  }

  private loadLists(): void {
    const { node } = this.address.view;
    const { span } = this.time;
    const { filter } = this;
    const metric = this.panels.sort;
    const when = this.when(REFRESH_SECONDS);
    const query = { metric, ...filter, span, limit: CONTAINERS_AT_MOST };
    const then = (): void => this.goOn();
    this.requests.load("containers", JSON.stringify([node, metric, filter, when]), this.containers, (signal) => this.source.containers(query, signal), then);
    this.requests.load("summary", JSON.stringify([node, filter, when]), this.summary, (signal) => this.source.summary(span, filter, signal), then);
    this.requests.load("events", JSON.stringify([node, filter, when]), this.events, (signal) => this.source.events(span, filter, signal), then);
  }

  /** Of everything there is, whatever is looked at: the cards stay while somebody zooms. */
  private loadIncidents(): void {
    const { node } = this.address.view;
    const { bounds, live } = this.time;
    const span = live ? { from: Math.max(bounds.from, bounds.to - INCIDENTS_LIVE_SECONDS), to: bounds.to } : bounds;
    const key = live ? `${node} live ${Math.floor(bounds.to / INCIDENT_SECONDS)}` : `${node} ${round(span.from)} ${round(span.to)}`;
    this.requests.load("incidents", key, this.incidents, (signal) => this.source.incidents(span, signal), (value) => {
      this.incidentsCame.send(value);
      this.studySoon();
    });
  }

  /** The first panel's metric over everything there is. */
  private loadOverview(): void {
    const [first] = this.panels.list;
    if (!first) return;
    const { node, containers } = this.address.view;
    const { filter } = this;
    const span = this.time.bounds;
    const choice = isHeat(first.choice) ? { ...first.choice, scope: "" } : first.choice;
    const query = { ...choice, containers, filter, span, points: OVERVIEW_POINTS };
    const key = JSON.stringify([node, first.key, containers, filter, round(span.from), Math.floor(span.to / OVERVIEW_SECONDS)]);
    this.requests.load("overview", key, this.overview, (signal) => this.source.timeseries(query, signal), () => this.goOn());
  }

  private loadSizes(): void {
    const { node, sheet } = this.address.view;
    if (sheet !== "rightsize") return;
    this.requests.load("sizes", `${node} ${Math.floor(this.time.newest / SIZES_SECONDS)}`, this.sizes, (signal) => this.source.rightsize(signal));
  }

  private loadStory(): void {
    const { node, who } = this.address.view;
    if (!who) return;
    const { bounds } = this.time;
    const key = `${node} ${who} ${Math.floor(bounds.to / REFRESH_SECONDS)}`;
    this.requests.load("story", key, this.story, (signal) => this.source.eventsOf(who, bounds, signal), () => {
      for (const panel of this.panels.list) panel.version += 1;
    });
  }

  /** One panel after the other, when all else is there: a study costs more than a picture. */
  private study(): void {
    const { node, study } = this.address.view;
    if (!this.isAnswered || this.incidents.loadingSince) return;
    for (const panel of this.panels.list) {
      const answer = panel.slot.value;
      if (!answer || panel.slot.loadingSince || panel.joined || isHeat(panel.choice)) continue;
      const isOfContainers = answer.scope === "container" || panel.choice.scope === "";
      const ids = isOfContainers ? studied(answer) : [];
      const key = JSON.stringify([study, node, ids, this.when(STUDY_SECONDS)]);
      if (panel.studies.key === key) continue;
      const query = { ...panel.choice, study, containers: ids, span: this.time.span };
      this.requests.load(`study ${panel.key}`, key, panel.studies, (signal) => this.source.study(query, signal), (value) => {
        panel.findings = collect(panel.key, value, panel.slot.value);
        panel.version += 1;
        this.studySoon();
      });
      return;
    }
  }

  /** An answer came, or failed: what waited for it is requested. */
  private goOn(): void {
    this.timers.soon("go on", 0, () => {
      this.refresh();
      this.studySoon();
    });
  }

  studySoon(): void {
    this.timers.soon("studies", 10, () => this.study());
  }
}

/** Lives are studied one by one: the two newest of each container, as many as one request takes. */
function studied(answer: TimeseriesJson): string[] {
  const lives = answer.series.map((series) => (series.lives.length ? series.lives : [series.id]));
  const newest = lives.flatMap((one) => one.slice(-1));
  return [...newest, ...lives.flatMap((one) => one.slice(-2, -1))].slice(0, STUDIED_AT_MOST);
}

function roundWidth(pixels: number): number {
  return Math.round(pixels / 100) * 100 || 100;
}
