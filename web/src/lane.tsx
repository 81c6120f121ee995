/** What happened to whom: starts, exits, OOM kills and restarts on the same time axis. */

import { useEffect, useState } from "preact/hooks";
import { AXIS_PIXELS, RIGHT_PIXELS } from "./chart";
import { brief, plain, shorten } from "./format";
import type { Model } from "./model";
import { clock, moment, zone, type Span } from "./time";
import type { NodeEvent } from "./types";

export const SIGNS: Record<string, string> = { start: "▲", exit: "▽", oom: "✖", restart: "↻" };
const RANK: Record<string, number> = { oom: 3, restart: 2, exit: 1, start: 0 };
const NEAR_PIXELS = 14;
const NAME_PIXELS = 120;

export interface Bunch {
  at: number;
  /** Whether there is room for its name. */
  named: boolean;
  share: number;
  events: NodeEvent[];
}

/** Events too near to tell apart become one mark that names the worst and counts the rest. */
export function bunch(events: readonly NodeEvent[], span: Span, width = 1200): Bunch[] {
  const out: Bunch[] = [];
  const inside = events.filter((event) => event.at >= span.from && event.at <= span.to).sort((a, b) => a.at - b.at);
  for (const event of inside) {
    const share = (event.at - span.from) / (span.to - span.from);
    const last = out[out.length - 1];
    if (last && (share - last.share) * width < NEAR_PIXELS) last.events.push(event);
    else out.push({ at: event.at, share, named: true, events: [event] });
  }
  for (const one of out) one.events.sort((a, b) => (RANK[b.kind] ?? 0) - (RANK[a.kind] ?? 0));
  nameThem(out, NAME_PIXELS / width);
  return out;
}

/** The worst get their names first; a name that would run into another mark is left to the title. */
function nameThem(bunches: Bunch[], room: number): void {
  const order = bunches.map((_, index) => index).sort((a, b) => rankOf(bunches[b]) - rankOf(bunches[a]));
  const taken: [number, number][] = [];
  for (const index of order) {
    const one = bunches[index];
    if (!one) continue;
    const span: [number, number] = one.share > 0.85 ? [one.share - room, one.share] : [one.share, one.share + room];
    const clear = bunches.every((other) => other === one || other.share < span[0] || other.share > span[1]);
    one.named = (clear || rankOf(one) === RANK["oom"]) && taken.every(([from, to]) => to < span[0] || from > span[1]);
    if (one.named) taken.push(span);
  }
}

function rankOf(one: Bunch | undefined): number {
  return RANK[one?.events[0]?.kind ?? ""] ?? 0;
}

export function useSpan(model: Model): Span {
  const [span, set] = useState(model.span);
  useEffect(() => model.windowMoved.on((next) => set({ ...next })), [model]);
  const { from, to } = model.span;
  return span.from === from && span.to === to ? span : { from, to };
}

export function Lane({ model }: { model: Model }) {
  const span = useSpan(model);
  const { value, trouble } = model.events;
  const bunches = bunch(value?.events ?? [], span, model.width);
  return (
    <section class="lane" aria-label="events" style={{ paddingRight: `calc(var(--legend) + ${RIGHT_PIXELS}px)` }}>
      <span class="lane-name" style={{ width: `${AXIS_PIXELS}px` }}>events</span>
      <div class="lane-marks">
        {bunches.map((one) => <Mark key={`${one.at} ${one.events[0]?.container}`} model={model} bunch={one} />)}
        {value && bunches.length === 0 && <span class="faint">no start, exit, restart or OOM kill in this range</span>}
        {trouble && <span class="harm">events: {trouble.failure.title} <button type="button" onClick={() => model.retry(model.events)}>retry</button></span>}
      </div>
      <Readout model={model} span={span} />
    </section>
  );
}

function Mark({ model, bunch: { at, share, events, named } }: { model: Model; bunch: Bunch }) {
  const [worst] = events;
  if (!worst) return null;
  const more = events.length - 1;
  const title = events.slice(0, 6).map((event) => plain(event.sentence)).join("\n") + (more > 5 ? `\nand ${more - 5} more` : "");
  const zoomTo = (): void => model.goTo({ from: at - 150, to: (events[events.length - 1]?.at ?? at) + 150 });
  return (
    <button type="button" class={`mark ${worst.kind} ${share > 0.85 ? "left" : ""}`} style={{ left: `${share * 100}%` }} title={title} aria-label={title} onClick={zoomTo}>
      <span aria-hidden="true">{SIGNS[worst.kind] ?? "•"}</span>
      {named && <><bdi class="mark-name">{plain(shorten(brief(worst.name), 18))}</bdi>{more > 0 && <span class="mark-more">+{more}</span>}</>}
    </button>
  );
}

function Readout({ model, span }: { model: Model; span: Span }) {
  const [at, set] = useState<number | null>(model.cursor);
  useEffect(() => model.cursorMoved.on(set), [model]);
  const { utc } = model.view;
  return <span class={at === null ? "readout" : "readout at"}>{at === null ? `${zone(utc, span.to)}` : span.to - span.from > 86400 ? moment(at, utc) : `${clock(at, utc)} ${zone(utc, at)}`}</span>;
}
