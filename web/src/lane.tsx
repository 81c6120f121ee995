/** The row of events above the panels: starts, exits, OOM kills and restarts of containers on the same time axis. */

import { AXIS_PIXELS, RIGHT_PIXELS } from "./chart";
import { brief, plain, shorten, spoken } from "./format";
import type { Model } from "./model";
import { useSignal } from "./signal";
import { clock, moment, tellTimes, zone, type Span } from "./time";
import type { EventJson } from "./types";

export const SIGNS: Record<string, string> = { start: "▲", exit: "▽", oom: "✖", restart: "↻", note: "✎" };
const RANK: Record<string, number> = { oom: 3, note: 2.5, restart: 2, exit: 1, start: 0 };
const NEAR_PIXELS = 14;
const NAME_LETTERS = 18;
const LETTER_PIXELS = 7;
const SIGN_PIXELS = 26;
/** Share of the width from which names stand left of their marks: at the right they would be cut off. */
const LEFT_FROM = 0.85;

export interface Bunch {
  at: number;
  /** Whether there is room for its name. */
  named: boolean;
  left: boolean;
  share: number;
  events: EventJson[];
}

/** Events too near each other become one mark, with the name of the worst and the number of the others. */
export function bunch(events: readonly EventJson[], span: Span, width = 1200): Bunch[] {
  const out: Bunch[] = [];
  const inside = events.filter((event) => event.at >= span.from && event.at <= span.to).sort((a, b) => a.at - b.at);
  for (const event of inside) {
    const share = (event.at - span.from) / (span.to - span.from);
    const last = out[out.length - 1];
    if (last && (share - last.share) * width < NEAR_PIXELS) last.events.push(event);
    else out.push({ at: event.at, share, named: true, left: false, events: [event] });
  }
  for (const one of out) one.events.sort((a, b) => (RANK[b.kind] ?? 0) - (RANK[a.kind] ?? 0));
  return nameThem(out, width);
}

/**
 * The worst get their names first, right or left of their mark. A name that would run into another
 * mark is shown in the tooltip only. An OOM kill always has its name; the marks that the name would
 * cover are counted into it.
 */
function nameThem(bunches: Bunch[], width: number): Bunch[] {
  const order = [...bunches].sort((a, b) => rankOf(b) - rankOf(a));
  const taken: [number, number][] = [];
  const covered = new Set<Bunch>();
  for (const one of order) {
    if (covered.has(one)) continue;
    const room = roomOf(one) / width;
    const right: [number, number] = [one.share, one.share + room];
    const left: [number, number] = [one.share - room, one.share];
    const sides = one.share > LEFT_FROM ? [left, right] : [right, left];
    const free = ([from, to]: [number, number]): boolean => taken.every((other) => other[1] < from || other[0] > to);
    const inside = ([from, to]: [number, number]): Bunch[] => bunches.filter((other) => other !== one && !covered.has(other) && other.share >= from && other.share <= to);
    const clear = sides.find((span) => span[0] >= 0 && span[1] <= 1 && free(span) && inside(span).length === 0);
    const forced = rankOf(one) === RANK["oom"] ? sides.find(free) : undefined;
    const span = clear ?? forced;
    one.named = span !== undefined;
    one.left = span === left;
    if (!span) continue;
    taken.push(span);
    for (const other of inside(span)) {
      one.events.push(...other.events);
      covered.add(other);
    }
  }
  return bunches.filter((one) => !covered.has(one));
}

/** Pixels of a mark with its name and its count. */
function roomOf(one: Bunch): number {
  const letters = shorten(brief(one.events[0]?.name ?? ""), NAME_LETTERS).length + (one.events.length > 1 ? 3 : 0);
  return SIGN_PIXELS + letters * LETTER_PIXELS;
}

function rankOf(one: Bunch | undefined): number {
  return RANK[one?.events[0]?.kind ?? ""] ?? 0;
}

export function Lane({ model }: { model: Model }) {
  useSignal(model.time.moved);
  const { span } = model.time;
  const { value, trouble } = model.data.events;
  const bunches = bunch(value?.events ?? [], span, model.data.width);
  return (
    <section class="lane" aria-label="events" style={{ paddingRight: `calc(var(--legend) + ${RIGHT_PIXELS}px)` }}>
      <span class="lane-name" style={{ width: `${AXIS_PIXELS}px` }}>events</span>
      <div class="lane-marks">
        {bunches.map((one) => <Mark key={`${one.at} ${one.events[0]?.container}`} model={model} bunch={one} />)}
        {value && bunches.length === 0 && <span class="faint">no start, exit, restart or OOM kill in this range</span>}
        {trouble && <span class="harm">events: {trouble.failure.title} <button type="button" onClick={() => model.data.requests.retry(model.data.events)}>retry</button></span>}
      </div>
      <Readout model={model} span={span} />
    </section>
  );
}

function Mark({ model, bunch: { share, events, named, left } }: { model: Model; bunch: Bunch }) {
  const [worst] = events;
  if (!worst) return null;
  const more = events.length - 1;
  const title = events.slice(0, 6).map((event) => spoken(tellTimes(event.sentence, model.view.utc, model.time.span.to))).join("\n") + (more > 5 ? `\nand ${more - 5} more` : "");
  const zoomTo = (): void => model.openEvent(worst, events);
  return (
    <button type="button" class={`mark ${worst.kind} ${left ? "left" : ""}`} style={{ left: `${share * 100}%` }} title={title} aria-label={named ? `${plain(shorten(brief(worst.name), NAME_LETTERS))}${more > 0 ? ` +${more}` : ""}: ${title}` : title} onClick={zoomTo}>
      <span aria-hidden="true">{SIGNS[worst.kind] ?? "•"}</span>
      {named && <><bdi class="mark-name">{plain(shorten(brief(worst.name), NAME_LETTERS))}</bdi>{more > 0 && <span class="mark-more">+{more}</span>}</>}
    </button>
  );
}

function Readout({ model, span }: { model: Model; span: Span }) {
  useSignal(model.time.cursorMoved);
  const at = model.time.cursor;
  const { utc } = model.view;
  return <span class={at === null ? "readout" : "readout at"}>{at === null ? `${zone(utc, span.to)}` : span.to - span.from > 86400 ? moment(at, utc) : `${clock(at, utc)} ${zone(utc, at)}`}</span>;
}
