/** The state of the page of many nodes: the view in the address, the newest answers, and when to ask again. */

import { Failure } from "../api";
import { Signal } from "../signal";
import { isSpan, resolve, shift, zoom, type Range, type Span } from "../time";
import { Timers } from "../timers";
import type { ClusterComparisonJson, ClusterWorkloadsJson, WallJson, WallNodeJson } from "../types";
import type { ClusterSource } from "./source";
import { decodeView, EMPTY_VIEW, encodeView, USUAL_SECONDS, WAY_BACK, type ClusterView } from "./view";

/** While nodes are being asked; then while the cluster is live. */
const ASKING_MS = 700;
const ASKING_MOST_MS = 3000;
const LIVE_MS = 15_000;
const AGAIN_MS = 5000;
/** A wheel that did not turn for so long rests. */
const REST_MS = 400;
/** Cells are a minute wide: a closer look is the page of the node. */
const SHORTEST = 600;
const LONGEST = 84 * 86400;

export interface Held<T> {
  value: T | null;
  failure: Failure | null;
  loading: boolean;
}

function hold<T>(): Held<T> {
  return { value: null, failure: null, loading: false };
}

export class ClusterModel {
  view: ClusterView = EMPTY_VIEW;
  readonly changed = new Signal<void>();
  readonly wall: Held<WallJson> = hold();
  readonly workloads: Held<ClusterWorkloadsJson> = hold();
  readonly comparison: Held<ClusterComparisonJson> = hold();
  /** The moment under the pointer or the keys; null: none. */
  cursor: number | null = null;
  /** The node under the pointer; empty: none. */
  pointed = "";
  columns = 180;
  sheet = false;
  private readonly timers: Timers;
  private readonly stops = new Map<string, AbortController>();
  private waits = 0;
  /** While the wheel turns: where each node was when it began. */
  private places: Map<string, number> | null = null;

  constructor(private readonly source: ClusterSource, private readonly page: Window) {
    this.timers = new Timers(page);
  }

  start(): void {
    this.view = decodeView(this.page.location.hash);
    this.page.addEventListener("hashchange", () => this.follow());
    this.page.addEventListener("popstate", () => this.follow());
    this.remember();
    this.load();
  }

  change(part: Partial<ClusterView>, push = true): void {
    const before = encodeView(this.view);
    this.view = { ...this.view, ...part };
    const after = encodeView(this.view);
    if (before !== after) {
      // A wheel turns ten times a second; browsers refuse so many entries, and one is enough.
      if (push) this.page.history.pushState(null, "", `#${after}`);
      else this.timers.soon("address", 150, () => this.page.history.replaceState(null, "", `#${encodeView(this.view)}`));
      this.remember();
    }
    this.load();
    this.changed.send();
  }

  private follow(): void {
    const found = decodeView(this.page.location.hash);
    if (encodeView(found) === encodeView(this.view)) return;
    this.view = found;
    this.remember();
    this.load();
    this.changed.send();
  }

  /** The page of a node leads back here. */
  private remember(): void {
    try {
      this.page.sessionStorage.setItem(WAY_BACK, `#${encodeView(this.view)}`);
    } catch {
      // Without storage the way back is the browser's own.
    }
  }

  // -- time ------------------------------------------------------------------------

  /** The range that is shown: as chosen, or as the newest answer says. */
  get span(): Span {
    const wall = this.wall.value;
    if (this.view.range && isSpan(this.view.range)) return this.view.range;
    if (!wall) return { from: 0, to: USUAL_SECONDS };
    if (this.view.range && "last" in this.view.range) return resolve(this.view.range, wall.first ?? wall.from, wall.to);
    return { from: wall.from, to: wall.to };
  }

  /** What is asked for and linked to: fixed once somebody zoomed. */
  get range(): Range | null {
    return this.view.range;
  }

  zoomBy(factor: number, at: number | null = null): void {
    const span = this.span;
    const wanted = zoom(span, factor, at ?? this.cursor ?? (span.from + span.to) / 2, LONGEST);
    if (wanted.to - wanted.from < SHORTEST && factor < 1) return;
    this.goTo(wanted, false);
  }

  pan(share: number): void {
    const span = this.span;
    this.goTo(shift(span, (span.to - span.from) * share), false);
  }

  goTo(range: Range | null, push = true): void {
    if (!push) this.turn();
    this.change({ range }, push);
  }

  /** A range is being moved: by a wheel, a drag, or a key that is held. */
  get isTurning(): boolean {
    return this.places !== null;
  }

  /** Who follows a row with the eye finds it where it was until the range rests. */
  private turn(): void {
    this.places ??= new Map((this.wall.value?.nodes ?? []).map((row, place) => [row.node, place]));
    this.timers.soon("rest", REST_MS, () => {
      this.places = null;
      this.changed.send();
    });
  }

  moveCursor(steps: number): void {
    const wall = this.wall.value;
    if (!wall) return;
    const span = this.span;
    const next = (this.cursor ?? (steps > 0 ? span.from : span.to)) + steps * wall.step;
    this.cursor = Math.min(Math.max(next, span.from), span.to - 1);
    this.changed.send();
  }

  point(at: number | null, node: string): void {
    if (this.cursor === at && this.pointed === node) return;
    this.cursor = at;
    this.pointed = node;
    this.changed.send();
  }

  // -- answers ---------------------------------------------------------------------

  /** The worst first, but while the range is being moved. */
  get nodes(): WallNodeJson[] {
    const words = this.view.search.toLowerCase().split(/\s+/).filter(Boolean);
    const found = (this.wall.value?.nodes ?? []).filter((row) => words.every((word) => row.node.toLowerCase().includes(word)));
    const { places } = this;
    return places ? found.sort((one, other) => (places.get(one.node) ?? places.size) - (places.get(other.node) ?? places.size)) : found;
  }

  resize(columns: number): void {
    if (Math.abs(columns - this.columns) < 8) return;
    this.columns = Math.min(360, Math.max(24, columns));
    this.timers.soon("load", 200, () => this.load());
  }

  load(): void {
    const { view } = this;
    this.fetch("wall", this.wall, (stop) => this.source.wall(view.measure, view.range, this.columns, stop));
    if (view.tab === "workloads") this.fetch("workloads", this.workloads, (stop) => this.source.workloads(view.metric, view.range, view.workload, stop));
    if (view.tab === "compare" && (view.before > 0 || view.left || view.right)) {
      const before = view.before > 0 ? this.span.from - view.before : null;
      const range = this.wall.value ? this.span : view.range;
      this.fetch("comparison", this.comparison, (stop) => this.source.compare(view.left, view.right, before, view.metric, view.measure, range, stop));
    }
  }

  private fetch<T extends { asking: number }>(name: string, held: Held<T>, ask: (stop: AbortSignal) => Promise<T>): void {
    this.stops.get(name)?.abort();
    const stop = new AbortController();
    this.stops.set(name, stop);
    held.loading = true;
    ask(stop.signal).then(
      (value) => {
        if (stop.signal.aborted) return;
        Object.assign(held, { value, failure: null, loading: false });
        if (this.isTurning) this.turn();
        this.again(name, value);
        this.changed.send();
      },
      (error: unknown) => {
        if (stop.signal.aborted) return;
        const failure = error instanceof Failure ? error : new Failure("The answer could not be read", String(error), "", true);
        Object.assign(held, { failure, loading: false });
        if (failure.again) this.timers.soon("load", AGAIN_MS, () => this.load());
        this.changed.send();
      },
    );
  }

  /** Soon while nodes are being asked, later while they are live; never of an archive that has said all. */
  private again(name: string, value: { asking: number }): void {
    if (value.asking > 0) {
      this.waits = Math.min(this.waits + 1, 8);
      this.timers.soon("load", Math.min(ASKING_MS * 1.25 ** this.waits, ASKING_MOST_MS), () => this.load());
    } else if (name === "wall") {
      this.waits = 0;
      if (this.wall.value?.live) this.timers.soon("load", LIVE_MS, () => this.load());
    }
  }
}
