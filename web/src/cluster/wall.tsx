/** The wall: a row a node, the worst first, each with its reason, its cells over the range, and its figures. */

import type { RefObject, VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { brief, plain, quantity, shorten, spoken } from "../format";
import { clock, minute, tellTimes, tick, type Span } from "../time";
import type { MeasureJson, WallJson, WallNodeJson } from "../types";
import type { ClusterModel } from "./model";
import { Nearness } from "./near";
import { colourOf, isHarm, legendSteps } from "./ramp";
import { Strip } from "./strip";
import { nodeLink } from "./view";

/** More rows than anybody reads at once; the rest is one button away. */
const ROWS_FIRST = 200;
const FIGURES = ["cpu", "memory", "pressure", "throttled"] as const;
const SHORT: Record<string, string> = { cpu: "CPU", memory: "memory", pressure: "pressure", throttled: "throttled" };
/** A drag shorter than this is a click. */
const DRAG_PIXELS = 5;

export function Wall({ model, dark }: { model: ClusterModel; dark: boolean }) {
  const wall = model.wall.value;
  const [all, setAll] = useState(false);
  const axis = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<Span | null>(null);
  const near = useMemo(() => new Nearness(), []);
  useColumns(model, axis);
  useKeptFocus();
  if (!wall) return null;
  const measure = wall.measures.find((one) => one.id === wall.measure) ?? wall.measures[0];
  if (!measure) return null;
  const rows = model.nodes;
  const shown = all ? rows : rows.slice(0, ROWS_FIRST);
  const timeAt = (x: number): number | null => {
    const box = axis.current?.getBoundingClientRect();
    if (!box || x < box.left || x > box.right) return null;
    const { from, to } = model.span;
    return from + ((x - box.left) / box.width) * (to - from);
  };
  return (
    <section class="wall" aria-label="nodes, the worst first"
      onPointerMove={(event) => model.point(timeAt(event.clientX), rowOf(event))}
      onPointerLeave={() => model.point(null, "")}
      onPointerDown={(event) => followDrag(model, event, timeAt, setDrag)}
      onDblClick={(event) => { if (timeAt(event.clientX) !== null && !isControl(event)) model.goTo(null); }}>
      <WheelZoom model={model} timeAt={timeAt} />
      <div class="wall-head">
        <Legend measure={measure} dark={dark} />
        <Axis model={model} wall={wall} measure={measure} axis={axis} drag={drag} />
        <p class="heads" aria-hidden="true">{FIGURES.map((name) => <span key={name}>{SHORT[name]}</span>)}<span>kills</span><span>restarts</span></p>
      </div>
      <ul class="wall-rows">
        {/* A row that becomes another kind is made anew: Chromium 156 keeps the old style of what is moved and gets another class in one step. */}
        {shown.map((row) => <Row key={`${kindOf(row)} ${row.node}`} model={model} wall={wall} row={row} measure={measure} dark={dark} near={near} />)}
      </ul>
      {rows.length === 0 && <p class="state">{wall.nodes.length ? `No node has "${plain(model.view.search)}" in its name.` : wall.trouble || "There is no node to ask yet."}</p>}
      {rows.length > shown.length && <p class="more"><button type="button" onClick={() => setAll(true)}>show all {rows.length} nodes</button></p>}
    </section>
  );
}

/** A row that is made anew or moved loses the focus; whoever uses keys stays where they are. */
function useKeptFocus(): void {
  const focused = document.activeElement?.closest<HTMLElement>(".wnode")?.dataset.node;
  useLayoutEffect(() => {
    if (focused === undefined || document.activeElement !== document.body) return;
    const row = [...document.querySelectorAll<HTMLElement>(".wnode")].find((one) => one.dataset.node === focused);
    row?.querySelector<HTMLElement>(".name")?.focus({ preventScroll: true });
  });
}

function kindOf(row: WallNodeJson): string {
  return row.state === "ok" ? (row.hurt ? "hurt" : "calm") : row.state;
}

interface RowParts {
  model: ClusterModel;
  wall: WallJson;
  row: WallNodeJson;
  measure: MeasureJson;
  dark: boolean;
}

/** Drawn anew only where something of it changed; while the wheel turns only near the screen, elsewhere once it rests. */
function Row({ near, ...parts }: RowParts & { near: Nearness }) {
  const item = useRef<HTMLLIElement>(null);
  const drawn = useRef<{ of: unknown[]; as: VNode } | null>(null);
  const [, draw] = useState(0);
  useEffect(() => (item.current ? near.watch(item.current, () => draw((count) => count + 1)) : undefined), []);
  const { model, wall, row, measure, dark } = parts;
  const { view, span } = model;
  const of = [wall, row, measure, dark, span.from, span.to, view.node === row.node, view.theme, view.utc];
  const isSame = drawn.current?.of.every((one, place) => one === of[place]);
  const waits = model.isTurning && near.isFar(item.current);
  if (!drawn.current || !(isSame || waits)) drawn.current = { of, as: <RowContent {...parts} item={item} /> };
  return drawn.current.as;
}

function RowContent({ model, wall, row, measure, dark, item }: RowParts & { item: RefObject<HTMLLIElement | null> }) {
  const { view, span } = model;
  const kind = kindOf(row);
  const whole = spoken(tellTimes(row.why, view.utc, span.to));
  const why = briefWhy(whole);
  const [mean, most] = [row.mean[measure.id] ?? null, row.most[measure.id] ?? null];
  const said = mean === null ? `${measure.title} was not measured` : `${measure.title}: mean ${quantity(mean, measure.unit)}, most ${quantity(most, measure.unit)}`;
  const more = row.container ? { container: row.container.slice(0, 12) } : {};
  return (
    <li ref={item} class={`wnode ${kind} ${view.node === row.node ? "last" : ""}`} data-node={row.node}>
      <div class="node-head">
        <a class="name" href={nodeLink(row.node, span, view, more)} onClick={() => model.change({ node: row.node }, false)} title={plain(row.node)}><bdi>{plain(shorten(row.node, 40))}</bdi></a>
        {row.state === "away" && <span class="tag">no answer</span>}
        <span class="why" title={whole}>{why}</span>
      </div>
      <Strip data={{ cells: row.cells, start: wall.start, step: wall.step }} span={span} scale={measure} dark={dark} label={`${plain(shorten(row.node, 40))}, ${said}`} away={row.state === "away"} />
      <p class="figures">
        {FIGURES.map((name) => <Figure key={name} wall={wall} row={row} name={name} dark={dark} />)}
        <Count words="kills" count={row.kills} harm />
        <Count words="restarts" count={row.restarts} />
      </p>
    </li>
  );
}

/** A row has room for one line: names without what makes pods unique, times to the minute; the tooltip has all of it. */
export function briefWhy(sentence: string): string {
  return sentence.replace(/"([^"]+)"/g, (_, name: string) => brief(name)).replace(/(\d\d:\d\d):\d\d(?: [A-Z]{2,5}\b)?/g, "$1");
}

function Figure({ wall, row, name, dark }: { wall: WallJson; row: WallNodeJson; name: string; dark: boolean }) {
  const measure = wall.measures.find((one) => one.id === name);
  const value = row.mean[name] ?? null;
  if (!measure) return null;
  const unsized = name === "cpu" && row.cores === null;
  return (
    <span class={`fig ${isHarm(value, measure) ? "harm" : ""}`} title={`${measure.title}, mean of the range: ${unsized ? "the size of the node is not known" : quantity(value, measure.unit)}`}>
      <span class="label">{SHORT[name]} </span>
      <i class={`swatch ${value === null ? "none" : ""}`} style={value === null ? {} : { background: colourOf(value, measure, dark) }} />
      {value === null || unsized ? <span class="faint">–<span class="visually-hidden"> not known</span></span> : percent(value)}
    </span>
  );
}

/** Whole percents: a column of figures is read at a glance. */
function percent(value: number): string {
  return value > 0 && value < 0.01 ? "<1 %" : `${Math.round(value * 100)} %`;
}

function Count({ words, count, harm = false }: { words: string; count: number | null; harm?: boolean }) {
  return <span class={`count ${count && harm ? "harm" : ""} ${count ? "" : "faint"}`}><span class="label">{words} </span>{count ?? "–"}</span>;
}

// -- the head -----------------------------------------------------------------------

function Legend({ measure, dark }: { measure: MeasureJson; dark: boolean }) {
  const hurts = measure.harm <= measure.full;
  return (
    <p class="legend-scale" title={`${measure.help} Each cell is its worst minute.`}>
      <span>{quantity(0, measure.unit)}</span>
      <span class="ramp" aria-hidden="true">{legendSteps(measure).map((value) => <i key={value} style={{ background: colourOf(value, measure, dark) }} />)}</span>
      <span>{quantity(measure.full, measure.unit)}{measure.full < 1 || measure.unit === "count" ? "+" : ""}</span>
      {hurts && <span class="faint">red from {quantity(measure.harm, measure.unit)}</span>}
    </p>
  );
}

function Axis({ model, wall, measure, axis, drag }: { model: ClusterModel; wall: WallJson; measure: MeasureJson; axis: { current: HTMLDivElement | null }; drag: Span | null }) {
  const { span, cursor, view } = model;
  const width = span.to - span.from;
  const at = (time: number): string => `${((time - span.from) / width) * 100}%`;
  const step = tickStep(width);
  const ticks: number[] = [];
  for (let time = Math.ceil(span.from / step) * step; time < span.to; time += step) ticks.push(time);
  const pointed = wall.nodes.find((row) => row.node === model.pointed);
  return (
    <div class="axis" ref={axis}>
      {ticks.map((time) => <span key={time} class="tick" style={{ left: at(time) }}>{tick(time, step, view.utc)}</span>)}
      {cursor !== null && <span class="cursor" style={{ left: at(cursor) }} aria-hidden="true" />}
      {drag && <span class="drag" style={{ left: at(drag.from), width: `${((drag.to - drag.from) / width) * 100}%` }} aria-hidden="true" />}
      {cursor !== null && <span class={`readout-at ${cursor > span.from + width / 2 ? "before" : ""}`} style={{ left: at(cursor) }} role="status">{readout(wall, pointed, measure, cursor, view.utc)}</span>}
    </div>
  );
}

export function readout(wall: WallJson, row: WallNodeJson | undefined, measure: MeasureJson, at: number, utc: boolean): string {
  const when = wall.step >= 60 ? minute(at, utc) : clock(at, utc);
  if (!row) return when;
  const value = row.cells[Math.floor((at - wall.start) / wall.step)];
  return `${when} ${plain(shorten(row.node, 24))}: ${value === undefined ? "outside" : quantity(value, measure.unit)}`;
}

const TICKS = [60, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400, 172800, 604800];

function tickStep(width: number): number {
  return TICKS.find((one) => width / one <= 7) ?? 1209600;
}

// -- pointer and wheel --------------------------------------------------------------

function rowOf(event: PointerEvent): string {
  const row = (event.target as Element | null)?.closest?.<HTMLElement>(".wnode");
  return row?.dataset["node"] ?? "";
}

function isControl(event: Event): boolean {
  return Boolean((event.target as Element | null)?.closest?.("a, button, select, input"));
}

/** A drag over the cells zooms; with Shift it pans. */
function followDrag(model: ClusterModel, event: PointerEvent, timeAt: (x: number) => number | null, show: (span: Span | null) => void): void {
  const start = timeAt(event.clientX);
  if (start === null || event.button !== 0 || isControl(event) || event.pointerType === "touch") return;
  event.preventDefault();
  const first = { x: event.clientX, span: model.span };
  const move = (next: PointerEvent): void => {
    const to = timeAt(next.clientX);
    if (to === null || Math.abs(next.clientX - first.x) < DRAG_PIXELS) return;
    if (next.shiftKey) {
      const width = first.span.to - first.span.from;
      const seconds = start - (first.span.from + ((to - model.span.from) / (model.span.to - model.span.from)) * width);
      model.goTo({ from: first.span.from + seconds, to: first.span.to + seconds }, false);
    } else show({ from: Math.min(start, to), to: Math.max(start, to) });
  };
  const end = (last: PointerEvent): void => {
    window.removeEventListener("pointermove", move);
    window.removeEventListener("pointerup", end);
    window.removeEventListener("pointercancel", end);
    show(null);
    const to = timeAt(last.clientX);
    if (to === null || last.shiftKey || last.type === "pointercancel" || Math.abs(last.clientX - first.x) < DRAG_PIXELS) return;
    model.goTo({ from: Math.min(start, to), to: Math.max(start, to) });
  };
  window.addEventListener("pointermove", move);
  window.addEventListener("pointerup", end);
  window.addEventListener("pointercancel", end);
}

/** The wheel scrolls the list; with Ctrl, Alt or over the axis it zooms at the pointer. */
function WheelZoom({ model, timeAt }: { model: ClusterModel; timeAt: (x: number) => number | null }) {
  const anchor = useRef<HTMLSpanElement>(null);
  useEffect(() => {
    const wall = anchor.current?.parentElement;
    if (!wall) return;
    const turn = (event: WheelEvent): void => {
      const overAxis = (event.target as Element).closest(".wall-head") !== null;
      const at = timeAt(event.clientX);
      if (at === null || !(overAxis || event.ctrlKey || event.altKey)) return;
      event.preventDefault();
      model.zoomBy(event.deltaY > 0 ? 1 / 0.75 : 0.75, at);
    };
    wall.addEventListener("wheel", turn, { passive: false });
    return () => wall.removeEventListener("wheel", turn);
  });
  return <span ref={anchor} hidden />;
}

/** As many columns as the strips have room for. */
function useColumns(model: ClusterModel, axis: { current: HTMLDivElement | null }): void {
  useEffect(() => {
    const element = axis.current;
    if (!element) return;
    const watch = new ResizeObserver(() => model.resize(Math.floor(element.clientWidth / 4)));
    watch.observe(element);
    return () => watch.disconnect();
  }, [model, model.wall.value === null]);
}
