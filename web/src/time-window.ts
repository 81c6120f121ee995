/** The window of time that is drawn, and the cursor in it. Charts listen to both directly: they move with the mouse. */

import type { Address } from "./address";
import { Signal } from "./signal";
import { clamp, isSpan, resolve, shift, zoom, type Range, type Span } from "./time";
import { now, type Timers } from "./timers";
import type { View } from "./view";

const LIVE_SECONDS = 900;
const ARCHIVE_SECONDS = 3600;
const YOUNG_SECONDS = 60;
/** The wheel and the keys come in bursts: data are requested this long after the last one. */
const SETTLE_MILLISECONDS = 250;

export class TimeWindow {
  readonly moved = new Signal<Span>();
  readonly cursorMoved = new Signal<number | null>();
  cursor: number | null = null;
  /** The time of the first sample there is, null when unknown; of the newest; and whether more arrive. */
  first: number | null = null;
  newest = 0;
  live = false;
  private preview: Span | null = null;

  constructor(
    private readonly address: Address,
    private readonly timers: Timers,
    private readonly offline: boolean,
  ) {
    address.changed.on((before) => {
      if (before.range !== address.view.range) this.preview = null;
    });
  }

  get range(): Range {
    if (this.address.view.range) return this.address.view.range;
    // A file was made of one range, and shows it.
    if (this.offline) return { all: true };
    return { last: this.live ? LIVE_SECONDS : ARCHIVE_SECONDS };
  }

  get bounds(): Span {
    const from = this.first ?? this.newest - ARCHIVE_SECONDS;
    return { from, to: Math.max(this.newest, from + 1) };
  }

  /** What is drawn: the chosen range, or where the mouse has dragged it so far. */
  get span(): Span {
    return this.preview ?? this.shorten(resolve(this.range, this.bounds.from, this.newest));
  }

  /** Where nothing was chosen, what was not recorded is left out: a young agent is not one pixel of fifteen minutes. */
  private shorten(span: Span): Span {
    if (this.address.view.range || this.first === null) return span;
    return { from: Math.max(span.from, Math.min(this.first, span.to - YOUNG_SECONDS)), to: span.to };
  }

  get isLive(): boolean {
    return !isSpan(this.range) && this.live;
  }

  get newestAge(): number {
    return Math.max(0, now() - this.newest);
  }

  /** While dragging: draws, requests nothing. */
  drag(span: Span): void {
    this.preview = span;
    this.sendMoved();
  }

  settle(): void {
    if (this.preview) this.goTo({ ...this.preview });
  }

  /** null: the range of a page where nothing was chosen. */
  goTo(range: Range | null, also: Partial<View> = {}): void {
    this.preview = null;
    this.address.change({ ...also, range: range && isSpan(range) ? { from: round(range.from), to: round(range.to) } : range });
    this.sendMoved();
  }

  zoomBy(factor: number, at = this.cursor ?? (this.span.from + this.span.to) / 2): void {
    this.drag(zoom(this.span, factor, at, (this.bounds.to - this.bounds.from) * 1.5));
    this.timers.soon("settle", SETTLE_MILLISECONDS, () => this.settle());
  }

  panBy(share: number): void {
    const span = this.span;
    this.drag(clamp(shift(span, (span.to - span.from) * share), this.bounds));
    this.timers.soon("settle", SETTLE_MILLISECONDS, () => this.settle());
  }

  /** From live to the window as it stands, and back. */
  toggleLive(): void {
    this.goTo(this.isLive ? { ...this.span } : { last: LIVE_SECONDS });
  }

  setCursor(at: number | null): void {
    if (this.cursor === at) return;
    this.cursor = at;
    this.cursorMoved.send(at);
  }

  stepCursor(steps: number, bucketSeconds = 0): void {
    const { from, to } = this.span;
    const at = (this.cursor ?? (from + to) / 2) + steps * Math.max(bucketSeconds, (to - from) / 300);
    this.setCursor(Math.min(Math.max(at, from), to));
  }

  sendMoved(): void {
    this.moved.send(this.span);
  }
}

/** To the millisecond, as the address has it. */
export function round(at: number): number {
  return Math.round(at * 1000) / 1000;
}
