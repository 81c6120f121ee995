/** The data of the page: which answers the view needs, and when they are requested. */

import type { Source } from "./api";
import type { Address } from "./address";
import { collect } from "./findings";
import type { Panel, Panels } from "./panels";
import { emptySlot, Requests, type Slot } from "./requests";
import { Signal } from "./signal";
import type { Timers } from "./timers";
import type { ContainersJson, EventsJson, FiltersJson, InstanceJson, RightsizeJson, StudyRowJson, SummaryJson, TimeseriesJson } from "./types";
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
const STUDIED_AT_MOST = 16;

export class Data {
  readonly instance = emptySlot<InstanceJson>();
  readonly summary = emptySlot<SummaryJson>();
  readonly containers = emptySlot<ContainersJson>();
  readonly events = emptySlot<EventsJson>();
  readonly overview = emptySlot<TimeseriesJson>();
  readonly filters = emptySlot<FiltersJson>();
  /** Requested while its sheet is open. */
  readonly sizes = emptySlot<RightsizeJson>();
  studies: StudyRowJson[] = [];
  /** The first answer takes a second longer: the viewer has rested. */
  starting = false;
  readonly opened = new Signal<InstanceJson>();
  /** The series that are drawn may be others: the live stream must follow. */
  readonly seriesChanged = new Signal<void>();
  /** Of the plotting area, in pixels. */
  width: number;
  private requestedWidth: number;
  private begun = false;
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
    this.requests = new Requests(timers, changed, (slot) => this.requestAgain(slot));
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
    this.loadOverview();
    this.loadSizes();
    if (!this.time.isLive) this.seriesChanged.send();
  }

  /** The first panel is there, or takes too long: everything else is requested. */
  private begin(): void {
    if (this.begun) return;
    this.begun = true;
    this.refresh();
  }

  /** Part of a key: live answers are renewed by the clock, fixed ones by their own range. */
  private when(seconds: number): string {
    const { range, span, newest, isLive } = this.time;
    return isLive ? `live ${JSON.stringify(range)} ${Math.floor(newest / seconds)}` : `${round(span.from)} ${round(span.to)}`;
  }

  private loadPanel(panel: Panel, points: number): void {
    const { node, containers } = this.address.view;
    const query = { ...panel.choice, containers, span: this.time.span, points };
    const key = JSON.stringify([node, containers, points, this.when(REFRESH_SECONDS)]);
    this.requests.load(`panel ${panel.key}`, key, panel.slot, (signal) => this.source.timeseries(query, signal), () => {
      panel.version += 1;
      this.panels.giveColours(panel);
      this.begin();
      this.timers.soon("listen", 100, () => this.seriesChanged.send());
      this.timers.soon("studies", this.time.isLive ? 50 : 350, () => this.study());
    });
  }

  private loadLists(): void {
    const { node, namespace, qos, labels } = this.address.view;
    const { span } = this.time;
    const metric = this.panels.sort;
    const when = this.when(REFRESH_SECONDS);
    const query = { metric, namespace, qos, labels, search: "", span, limit: CONTAINERS_AT_MOST };
    this.requests.load("containers", JSON.stringify([node, metric, namespace, qos, labels, when]), this.containers, (signal) => this.source.containers(query, signal));
    this.requests.load("summary", `${node} ${when}`, this.summary, (signal) => this.source.summary(span, signal));
    this.requests.load("events", `${node} ${when}`, this.events, (signal) => this.source.events(span, signal));
  }

  /** The first panel's metric over everything there is. */
  private loadOverview(): void {
    const [first] = this.panels.list;
    if (!first) return;
    const { node, containers } = this.address.view;
    const span = this.time.bounds;
    const query = { ...first.choice, containers, span, points: OVERVIEW_POINTS };
    const key = JSON.stringify([node, first.key, containers, round(span.from), Math.floor(span.to / OVERVIEW_SECONDS)]);
    this.requests.load("overview", key, this.overview, (signal) => this.source.timeseries(query, signal));
  }

  private loadSizes(): void {
    const { node, sheet } = this.address.view;
    if (sheet !== "rightsize") return;
    this.requests.load("sizes", `${node} ${Math.floor(this.time.newest / SIZES_SECONDS)}`, this.sizes, (signal) => this.source.rightsize(signal));
  }

  /** One panel after the other, when all are drawn: a study costs more than a picture. */
  private study(): void {
    const { node, study } = this.address.view;
    for (const panel of this.panels.list) {
      const answer = panel.slot.value;
      if (!answer || panel.slot.loadingSince) continue;
      const ids = answer.scope === "container" || panel.choice.scope === "" ? answer.series.map((series) => series.id) : [];
      const key = JSON.stringify([study, node, ids, this.when(STUDY_SECONDS)]);
      if (panel.studies.key === key) continue;
      const query = { ...panel.choice, study, containers: ids.slice(0, STUDIED_AT_MOST), span: this.time.span };
      this.requests.load(`study ${panel.key}`, key, panel.studies, (signal) => this.source.study(query, signal), (value) => {
        panel.findings = collect(panel.key, value, panel.slot.value);
        panel.version += 1;
        this.studySoon();
      });
      return;
    }
  }

  studySoon(): void {
    this.timers.soon("studies", 10, () => this.study());
  }
}

function roundWidth(pixels: number): number {
  return Math.round(pixels / 100) * 100 || 100;
}
