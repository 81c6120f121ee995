/** What the watcher tells, as it happens: the stream of /api/incidents, open while the node is live and the page is seen. */

import type { Address } from "./address";
import type { Source } from "./api";
import type { TimeWindow } from "./time-window";
import { now, type Timers } from "./timers";
import type { WrongJson } from "./types";

/** A stream that was refused is opened again so much later; one that broke off the browser opens by itself. */
const AGAIN_SECONDS = [5, 15, 30, 60];
/** The server says something every fifteen seconds, unless it is very busy. */
const SILENT_SECONDS = 120;

export interface CardListener {
  cards(wrong: WrongJson): void;
  /** Nothing new, and the connection is alive. */
  still(): void;
  /** For good: the server refused, and the browser does not try again. */
  lost(forGood: boolean): void;
}

export class CardStream {
  wrong: WrongJson | null = null;
  /** Since when nothing is heard; 0 while all is well. */
  lostSince = 0;
  /** Of which node and whether anything is listened to; empty when not. */
  private key = "";
  private begun = false;
  private heard = 0;
  private node = "";
  private attempts = 0;
  private close: () => void = () => undefined;

  constructor(
    private readonly source: Source,
    private readonly address: Address,
    private readonly time: TimeWindow,
    private readonly timers: Timers,
    private readonly isSeen: () => boolean,
    private readonly changed: () => void,
  ) {}

  /** Whether the page says what is wrong now: of a live node, whatever range is looked at. */
  get isTold(): boolean {
    return this.time.live && !this.source.offline;
  }

  /** The page came to the front or went from there. */
  follow(): void {
    if (this.begun) this.listen();
  }

  /** Opens the stream, or closes it: a page in the background costs the viewer nothing. */
  listen(): void {
    this.begun = true;
    const { node } = this.address.view;
    const key = this.isTold && this.isSeen() ? `of ${node}` : "";
    if (key === this.key) return;
    this.stop();
    if (node !== this.node || !this.isTold) Object.assign(this, { wrong: null, lostSince: 0 });
    this.node = node;
    this.key = key;
    if (key) this.open(key);
  }

  private open(key: string): void {
    this.close = this.source.cards({
      cards: (wrong) => {
        if (this.key !== key) return;
        Object.assign(this, { wrong, attempts: 0 });
        this.hear();
        this.changed();
      },
      still: () => this.key === key && this.hear(),
      lost: (forGood) => {
        if (this.key !== key) return;
        this.lostSince ||= now();
        if (forGood) this.openLater(key);
        this.changed();
      },
    });
    this.heard = now();
  }

  /** Once a second: a connection may be dead without anybody having closed it, as after a laptop's sleep. */
  check(): void {
    if (!this.key || this.lostSince || now() - this.heard <= SILENT_SECONDS) return;
    this.lostSince = now();
    this.openLater(this.key);
    this.changed();
  }

  private hear(): void {
    const wasLost = this.lostSince > 0;
    Object.assign(this, { lostSince: 0, heard: now() });
    if (wasLost) this.changed();
  }

  private openLater(key: string): void {
    this.close();
    const wait = AGAIN_SECONDS[Math.min(this.attempts, AGAIN_SECONDS.length - 1)] ?? 60;
    this.attempts += 1;
    this.timers.soon("cards", wait * 1000, () => {
      if (this.key === key) this.open(key);
    });
  }

  private stop(): void {
    this.key = "";
    this.attempts = 0;
    this.close();
    this.close = () => undefined;
  }
}
