/** A heat map: a row for each container, coloured by its share of its limit, the most harmed first. */

import { useEffect, useRef } from "preact/hooks";
import { AXIS_PIXELS, RIGHT_PIXELS } from "./chart";
import { brief, figure, plain, quantity, shorten, words } from "./format";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { nearest, type Value } from "./series";
import { useSignal } from "./signal";
import { Trouble } from "./states";
import { isDark } from "./theme";
import { minute } from "./time";
import type { HeatJson, HeatRowJson } from "./types";

const ROW_PIXELS = 16;
/** From light to dark (on a dark ground the other way round): half, nine tenths, and above, which is harm. */
const SCALES = {
  light: { low: [227, 240, 249], high: [0, 103, 168], warm: [201, 129, 0], harm: [179, 38, 30], grey: [92, 100, 112] },
  dark: { low: [22, 41, 58], high: [95, 180, 240], warm: [240, 164, 58], harm: [255, 110, 100], grey: [154, 163, 176] },
} as const;
const WARM = 0.75;
const HARM = 0.9;

type Colour = readonly [number, number, number] | readonly number[];

function mix(a: Colour, b: Colour, share: number): string {
  const part = Math.min(Math.max(share, 0), 1);
  return `rgb(${[0, 1, 2].map((place) => Math.round((a[place] ?? 0) + ((b[place] ?? 0) - (a[place] ?? 0)) * part)).join(" ")})`;
}

/** Red is kept for what is nearly at its limit; a share of the node is grey, because nothing bad happens there. */
export function heatColour(share: number, of: HeatRowJson["of"], dark: boolean): string {
  const scale = SCALES[dark ? "dark" : "light"];
  if (of === "node") return mix(scale.low, scale.grey, share);
  if (share >= HARM) return mix(scale.harm, scale.harm, 1);
  if (share >= WARM) return mix(scale.warm, scale.harm, ((share - WARM) / (HARM - WARM)) * 0.4);
  return mix(scale.low, scale.high, share / WARM);
}

/** What the picture says: who is at a limit, and how many are. */
export function tellHeat(answer: HeatJson, utc: boolean): string {
  const near = answer.rows.filter((row) => row.of !== "node" && row.share.some((value) => value !== null && value >= HARM));
  const worst = answer.rows.find((row) => highest(row.share) !== null);
  if (!worst) return "No container was measured in this range.";
  const what = worst.of === "time" ? "of its time waiting" : "of its limit";
  const top = highest(worst.share);
  const when = top === null ? "" : `, highest ${figure((worst.share[top] ?? 0) * 100)} % ${worst.of === "node" ? "of the node" : what} at ${minute(answer.time[top] ?? 0, utc)}`;
  const kills = worst.kills ? `, killed for memory ${worst.kills === 1 ? "once" : `${worst.kills} times`}` : "";
  const count = near.length === 0 ? `None of ${answer.rows.length} came near` : `${near.length} of ${answer.rows.length} came within a tenth of`;
  return `${count} ${worst.of === "time" ? "standing still" : "its limit"}; worst is ${shorten(brief(worst.name), 40)}${when}${kills}.`;
}

function highest(values: Value[]): number | null {
  let best: number | null = null;
  values.forEach((value, place) => {
    if (value !== null && (best === null || value > (values[best] ?? 0))) best = place;
  });
  return best;
}

export function HeatPanel({ model, panel, index }: { model: Model; panel: Panel; index: number }) {
  useSignal(model.time.moved);
  useSignal(model.time.cursorMoved);
  const canvas = useRef<HTMLCanvasElement>(null);
  const { value: answer, trouble } = panel.heat;
  const rows = answer?.rows ?? [];
  useEffect(() => {
    if (canvas.current && answer) paint(canvas.current, answer, model);
  });
  const focused = model.view.focus === index;
  const said = answer ? tellHeat(answer, model.view.utc) : "";
  const at = model.time.cursor;
  const place = answer && at !== null ? nearest(answer.time, at - answer.bucket_seconds / 2) : -1;
  return (
    <section class={`panel heat ${focused ? "focused" : ""}`} aria-label={`panel ${index + 1}: heat map of ${words(panel.choice.metric)}`} onPointerDown={() => { if (!focused) model.panels.focus(index); }}>
      <header>
        <span class="number" aria-hidden="true">{index + 1}</span>
        <h2>{words(panel.choice.metric)} <span class="faint unit">({panel.choice.metric.startsWith("pressure") ? "share of time" : "share of the limit"})</span></h2>
        <p class="sentence" title={said}>{said}</p>
        <span class="tools"><button type="button" class="plain" aria-label={`remove panel ${index + 1}`} title="remove this panel (x)" onClick={() => model.panels.remove(index)}>×</button></span>
      </header>
      <div class="heat-body" tabIndex={0} role="group" aria-label="rows of the heat map">
        {trouble && <Trouble small trouble={trouble} retry={() => model.data.requests.retry(panel.heat)} />}
        {!answer && !trouble && <p class="state loading" role="status">looking at every container ...</p>}
        <div class="heat-map" style={{ height: `${rows.length * ROW_PIXELS}px` }}>
          <canvas ref={canvas} role="img" aria-label={said} style={{ left: `${AXIS_PIXELS}px`, width: `calc(100% - ${AXIS_PIXELS + RIGHT_PIXELS}px)` }}
            onPointerMove={(event) => model.time.setCursor(timeAt(model, event))} onPointerLeave={() => model.time.setCursor(null)} onClick={(event) => choose(model, rows, event)} />
          {at !== null && answer && <span class="heat-cursor" style={{ left: `calc(${AXIS_PIXELS}px + (100% - ${AXIS_PIXELS + RIGHT_PIXELS}px) * ${shareOf(model, at)})` }} />}
        </div>
        <ul class="heat-names">
          {rows.map((row) => <Name key={row.id} model={model} row={row} place={place} />)}
        </ul>
      </div>
    </section>
  );
}

function Name({ model, row, place }: { model: Model; row: HeatRowJson; place: number }) {
  const known = row.share.filter((value) => value !== null);
  const value = place >= 0 ? (row.share[place] ?? null) : known.length ? Math.max(...known) : null;
  const of = row.of === "limit" ? `limit ${quantity(row.whole, row.whole !== null && row.whole > 1e4 ? "bytes" : "cores")}` : row.of === "node" ? "no limit: share of the node" : "share of time waiting";
  return (
    <li>
      <button type="button" class="line" title={`${plain(row.name)}\n${of}${row.kills ? `\nkilled for memory: ${row.kills}` : ""}\nclick: its page`} onClick={() => model.openContainer({ short_id: row.id.slice(0, 12) })}>
        <span class={row.kills ? "harm" : "faint"} aria-hidden="true">{row.kills ? "✖" : ""}</span>
        <bdi class="name">{plain(shorten(brief(row.name), 40))}{model.many && <span class="faint"> {plain(shorten(row.node, 16))}</span>}</bdi>
        <span class={value !== null && value >= HARM && row.of !== "node" ? "value harm" : "value"}>{value === null ? (row.of === "node" ? "no limit" : "no sample") : `${place < 0 ? "max " : ""}${figure(value * 100)} %${row.of === "node" ? " of node" : ""}`}</span>
      </button>
    </li>
  );
}

function shareOf(model: Model, at: number): number {
  const { from, to } = model.time.span;
  return Math.min(Math.max((at - from) / (to - from), 0), 1);
}

function timeAt(model: Model, event: PointerEvent): number {
  const { from, to } = model.time.span;
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  return from + ((event.clientX - box.left) / box.width) * (to - from);
}

function choose(model: Model, rows: readonly HeatRowJson[], event: MouseEvent): void {
  const box = (event.currentTarget as HTMLElement).getBoundingClientRect();
  const row = rows[Math.floor((event.clientY - box.top) / ROW_PIXELS)];
  if (row) model.openContainer({ short_id: row.id.slice(0, 12) });
}

/** One rectangle a cell; what was not measured stays empty. */
function paint(canvas: HTMLCanvasElement, answer: HeatJson, model: Model): void {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [canvas.clientWidth, answer.rows.length * ROW_PIXELS];
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const pen = canvas.getContext("2d");
  if (!pen) return;
  const dark = isDark(model.view.theme);
  const { from, to } = model.time.span;
  const pixel = (at: number): number => ((at - from) / (to - from)) * canvas.width;
  answer.rows.forEach((row, line) => {
    row.share.forEach((share, place) => {
      const at = answer.time[place] ?? 0;
      const left = Math.floor(pixel(at));
      const right = Math.ceil(pixel(at + answer.bucket_seconds));
      if (share === null || right < 0 || left > canvas.width) return;
      pen.fillStyle = heatColour(share, row.of, dark);
      pen.fillRect(left, Math.round(line * ROW_PIXELS * ratio), right - left, Math.round((ROW_PIXELS - 1) * ratio));
    });
  });
}
