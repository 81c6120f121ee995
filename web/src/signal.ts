/** A list of listeners: what connects the parts of the model with each other and with what draws them. */

import { useEffect, useState } from "preact/hooks";

export class Signal<T> {
  private readonly listeners = new Set<(value: T) => void>();

  on(listener: (value: T) => void): () => void {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  send(value: T): void {
    for (const listener of this.listeners) listener(value);
  }
}

/** Draws the component again when the signal is sent, at most once a frame. */
export function useSignal<T>(signal: Signal<T>): void {
  const [, draw] = useState(0);
  useEffect(() => {
    let frame = 0;
    const stop = signal.on(() => {
      frame ||= requestAnimationFrame(() => {
        frame = 0;
        draw((count) => count + 1);
      });
    });
    return () => {
      stop();
      cancelAnimationFrame(frame);
    };
  }, [signal]);
}
