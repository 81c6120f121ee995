/** An absolute range, typed: from and to, in the zone that the page shows. */

import { useState } from "preact/hooks";
import type { Model } from "./model";
import { clock, day, duration, zone } from "./time";

export function TimeSheet({ model }: { model: Model }) {
  const { utc } = model.view;
  const { span, bounds } = model.time;
  const [from, setFrom] = useState(written(span.from, utc));
  const [to, setTo] = useState(written(span.to, utc));
  const chosen = { from: read(from, utc), to: read(to, utc) };
  const wrong = refuse(chosen.from, chosen.to, bounds);
  const go = (event: Event): void => {
    event.preventDefault();
    if (wrong || chosen.from === null || chosen.to === null) return;
    model.openSheet("");
    model.time.goTo({ from: chosen.from, to: chosen.to });
  };
  return (
    <form class="time-form" onSubmit={go}>
      <label>from <input type="datetime-local" step="1" value={from} onInput={(event) => setFrom(event.currentTarget.value)} /></label>
      <label>to <input type="datetime-local" step="1" value={to} onInput={(event) => setTo(event.currentTarget.value)} /></label>
      <span class="faint">{zone(utc, span.to)}</span>
      <p class={wrong ? "harm" : "faint"} role="status">{wrong || `${duration(Math.round((chosen.to ?? 0) - (chosen.from ?? 0)))}. There are samples from ${written(bounds.from, utc).replace("T", " ")} to ${written(bounds.to, utc).replace("T", " ")}.`}</p>
      <p class="buttons"><button type="submit" disabled={wrong !== ""}>show this range</button></p>
    </form>
  );
}

export function written(at: number, utc: boolean): string {
  return `${day(at, utc)}T${clock(at, utc)}`;
}

/** Null where it is no moment. */
export function read(text: string, utc: boolean): number | null {
  const at = Date.parse(utc ? `${text}Z` : text) / 1000;
  return Number.isFinite(at) ? at : null;
}

function refuse(from: number | null, to: number | null, bounds: { from: number; to: number }): string {
  if (from === null || to === null) return "Both moments are needed, with date and time.";
  if (to <= from) return "The range ends before it begins.";
  if (from > bounds.to || to < bounds.from) return "Nothing was recorded in this range.";
  return "";
}
