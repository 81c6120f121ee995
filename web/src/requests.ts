/** Requests and the answers they left: one request at a time for each name, retried by itself where that may help. */

import { Failure, isCancelled } from "./api";
import type { Signal } from "./signal";
import { now, type Timers } from "./timers";

export interface Trouble {
  failure: Failure;
  since: number;
  /** When it is tried again by itself; 0 when it is not. */
  againAt: number;
}

/** One answer of the server: what came, what failed, what is on its way. */
export interface Slot<T> {
  /** What the answer depends on: it is requested again when this changes. */
  key: string;
  value: T | null;
  trouble: Trouble | null;
  loadingSince: number;
}

export function emptySlot<T>(): Slot<T> {
  return { key: "", value: null, trouble: null, loadingSince: 0 };
}

const RETRY_SECONDS = [2, 4, 8, 15, 30];

export class Requests {
  private readonly running = new Map<string, AbortController>();
  private readonly attempts = new Map<string, number>();

  constructor(
    private readonly timers: Timers,
    private readonly changed: Signal<void>,
    /** Requests a slot again whose key was cleared. */
    private readonly again: (slot: Slot<unknown>) => void,
    /** An answer failed: what waits for it must not wait for ever. */
    private readonly failed: () => void,
  ) {}

  /** Does nothing when the slot has, or waits for, the answer of this key. */
  load<T>(name: string, key: string, slot: Slot<T>, request: (signal: AbortSignal) => Promise<T>, then?: (value: T) => void): void {
    if (slot.key === key) return;
    slot.key = key;
    this.cancel(name);
    const running = new AbortController();
    this.running.set(name, running);
    slot.loadingSince = now();
    request(running.signal).then(
      (value) => {
        if (running.signal.aborted) return;
        Object.assign(slot, { value, trouble: null, loadingSince: 0 });
        this.attempts.delete(name);
        then?.(value);
        this.changed.send();
      },
      (error: unknown) => {
        if (running.signal.aborted || isCancelled(error)) return;
        this.fail(name, slot, error instanceof Failure ? error : new Failure("this answer could not be read", String(error), "", false));
        this.failed();
        this.changed.send();
      },
    );
  }

  cancel(name: string): void {
    this.running.get(name)?.abort();
  }

  /** Now, whatever the time of the next attempt was. */
  retry(slot: Slot<unknown>): void {
    slot.key = "";
    slot.trouble = null;
    this.attempts.clear();
    this.again(slot);
  }

  private fail(name: string, slot: Slot<unknown>, failure: Failure): void {
    const attempts = this.attempts.get(name) ?? 0;
    this.attempts.set(name, attempts + 1);
    const wait = RETRY_SECONDS[Math.min(attempts, RETRY_SECONDS.length - 1)] ?? 30;
    slot.loadingSince = 0;
    slot.trouble = { failure, since: slot.trouble?.since ?? now(), againAt: failure.again ? now() + wait : 0 };
    if (!failure.again) return;
    const { key } = slot;
    this.timers.soon(`again ${name}`, wait * 1000, () => {
      if (slot.key !== key) return;
      slot.key = "";
      this.again(slot);
    });
  }
}
