/** The chart of one panel, drawn by uPlot: made anew when its series change, moved when only the time window does. */

import uPlot from "uplot";
import { seriesBefore } from "./earlier";
import { axisFigures, axisSteps } from "./format";
import { belowEach, stack } from "./groups";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { drawGround, drawMarks, limitShown, type Drawn, type Stacked } from "./overlay";
import { axisRange, bounds, boundsOfStack, type Bounds } from "./series";
import { readLook, stroke, type Look } from "./theme";
import { shift, tick, zoom, type Span } from "./time";
import type { SeriesJson, TimeseriesJson } from "./types";

export const AXIS_PIXELS = 64;
/** Room right of the plot, for the last label of the time axis. Events and overview leave the same, so that all share one axis. */
export const RIGHT_PIXELS = 18;
const FONT = "12px system-ui, sans-serif";

/** With what the drawn series had earlier, where that is drawn, too. */
function widen(found: Bounds | null, { earlier, shown }: Drawn): Bounds | null {
  if (!found || !earlier) return found;
  const values = shown.flatMap((series) => seriesBefore(earlier, series)?.mean ?? []).filter((value) => value !== null);
  return values.reduce((all, value) => ({ low: Math.min(all.low, value), high: Math.max(all.high, value) }), found);
}

export class Chart {
  private plot: uPlot | null = null;
  private shape = "";
  private quiet = false;
  /** The drag began with Alt: what it selects is explained, not zoomed to. */
  private asksWhy = false;
  private look: Look = readLook();
  private readonly stops: (() => void)[] = [];
  private readonly observer: ResizeObserver;

  constructor(
    private readonly host: HTMLElement,
    private readonly model: Model,
    private panel: Panel,
  ) {
    this.stops.push(model.time.moved.on((span) => this.move(span)));
    this.stops.push(model.time.cursorMoved.on((at) => this.point(at)));
    this.observer = new ResizeObserver(() => this.resize());
    this.observer.observe(host);
    this.gestures();
  }

  /** Draws all that may have changed; window and cursor have signals of their own. */
  draw(panel: Panel): void {
    this.panel = panel;
    const answer = panel.slot.value;
    if (!answer) {
      this.drop();
      return;
    }
    this.look = readLook();
    const isShown = this.model.selection.shownIn(answer);
    const shown = answer.series.map((series) => [series.id, isShown(series), this.model.panels.palette.inkOf(series)]);
    const shape = JSON.stringify([shown, panel.joined, answer.unit, this.look.dark, this.model.view.utc]);
    const columns = panel.joined === "sum" ? stack(answer.series, isShown) : answer.series.map((series) => series.mean);
    const data = [answer.time, ...columns] as uPlot.AlignedData;
    // Not used by the page: for tests, and for a person with the inspector.
    this.host.dataset["newest"] = (answer.time[answer.time.length - 1] ?? 0).toFixed(3);
    if (!this.plot || shape !== this.shape) {
      this.drop();
      this.shape = shape;
      this.plot = new uPlot(this.options(answer.series, answer.unit), data, this.host);
      this.move(this.model.time.span);
      return;
    }
    this.plot.setData(data, false);
    this.move(this.model.time.span);
  }

  destroy(): void {
    for (const stop of this.stops) stop();
    this.observer.disconnect();
    this.drop();
  }

  /** Where a value is, in pixels from the top of the plot; and the value of a place. */
  topOf(value: number): number {
    return this.plot ? this.plot.valToPos(value, "y") + this.plot.bbox.top / devicePixelRatio : 0;
  }

  valueAt(top: number): number {
    return this.plot ? this.plot.posToVal(top - this.plot.bbox.top / devicePixelRatio, "y") : 0;
  }

  canvas(): HTMLCanvasElement | null {
    return this.plot?.ctx.canvas ?? null;
  }

  /** Fades the other lines while the mouse is on one row of the legend. */
  accent(id: string | null): void {
    const index = this.panel.slot.value?.series.findIndex((series) => series.id === id) ?? -1;
    this.plot?.setSeries(index < 0 ? null : index + 1, { focus: index >= 0 }, false);
  }

  private drop(): void {
    this.plot?.destroy();
    this.plot = null;
    this.shape = "";
  }

  private move(span: Span): void {
    this.plot?.setScale("x", { min: span.from, max: span.to });
    // For tests, like the newest point above.
    this.host.dataset["from"] = span.from.toFixed(3);
    this.host.dataset["to"] = span.to.toFixed(3);
  }

  private point(at: number | null): void {
    if (!this.plot) return;
    this.quiet = true;
    const left = at === null ? -10 : this.plot.valToPos(at, "x");
    const inside = left >= 0 && left <= this.plot.over.clientWidth;
    this.plot.setCursor({ left: inside ? left : -10, top: inside ? (this.plot.cursor.top ?? 0) : -10 }, false);
    this.quiet = false;
  }

  private resize(): void {
    const { clientWidth: width, clientHeight: height } = this.host;
    if (width > 0 && height > 0) this.plot?.setSize({ width, height });
    if (width > AXIS_PIXELS) this.model.data.setWidth(width - AXIS_PIXELS - RIGHT_PIXELS);
  }

  private drawn(): Drawn | null {
    const { model, panel, look } = this;
    const answer = panel.slot.value;
    if (!answer) return null;
    const chosen = model.panels.chosenFinding;
    return {
      answer,
      shown: answer.series.filter(model.selection.shownIn(answer)),
      colour: (series) => stroke(model.panels.palette.inkOf(series), look.dark),
      found: panel.findings,
      earlier: model.panels.earlierOf(panel),
      chosen: chosen?.panel === panel.key ? chosen : null,
      look,
      unit: answer.unit,
      stacked: panel.joined === "sum" ? this.stacked(answer) : null,
      why: model.view.drawer === "why" ? model.view.why : null,
      threshold: model.view.thresholds[panel.key] ?? null,
      page: model.pageOf(panel),
    };
  }

  private stacked(answer: TimeseriesJson): Stacked {
    const isShown = this.model.selection.shownIn(answer);
    const columns = stack(answer.series, isShown);
    return { columns, below: belowEach(columns, answer.series.map(isShown)) };
  }

  private paint(plot: uPlot, draw: (plot: uPlot, drawn: Drawn) => void): void {
    const drawn = this.drawn();
    if (drawn) draw(plot, drawn);
  }

  private limits(): [number, number] {
    const drawn = this.drawn();
    if (!drawn) return [0, 1];
    const isShown = this.model.selection.shownIn(drawn.answer);
    const found = drawn.stacked ? boundsOfStack(drawn.answer.time, drawn.stacked.columns, this.model.time.span) : bounds(drawn.answer, isShown, this.model.time.span);
    const marks = [limitShown(drawn), drawn.threshold].filter((one) => one !== null);
    return axisRange(widen(found, drawn), marks.length ? Math.max(...marks) : null);
  }

  private options(series: SeriesJson[], unit: string): uPlot.Options {
    const { model, look } = this;
    const isShown = model.selection.shownIn(this.panel.slot.value);
    const axis = { stroke: look.faint, font: FONT, grid: { stroke: look.grid, width: 1 }, ticks: { show: false } };
    return {
      width: Math.max(this.host.clientWidth, 50),
      height: Math.max(this.host.clientHeight, 50),
      padding: [null, RIGHT_PIXELS, null, null],
      legend: { show: false },
      focus: { alpha: 0.2 },
      tzDate: (at) => (model.view.utc ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
      cursor: {
        y: false,
        points: { size: 6, width: 2 },
        drag: { x: true, y: false, setScale: false, dist: 4 },
        bind: {
          // With Shift or another button the mouse pans: uPlot must not select.
          mousedown: (_plot, _target, handler) => (event) => {
            if (event.button === 0 && !event.shiftKey) {
              this.asksWhy = event.altKey;
              handler(event);
            }
            return null;
          },
          dblclick: () => () => {
            model.time.goTo(null);
            return null;
          },
        },
      },
      scales: {
        x: { time: true, auto: false },
        y: { auto: true, range: () => this.limits() },
      },
      axes: [
        { ...axis, size: 24, gap: 4, space: 90, values: (_plot, splits, _axis, _space, step) => splits.map((at) => tick(at, step, model.view.utc)) },
        {
          ...axis,
          size: AXIS_PIXELS,
          gap: 6,
          space: 26,
          incrs: axisSteps(unit),
          values: (_plot, splits) => axisFigures(splits, unit),
        },
      ],
      series: [
        {},
        ...series.map((one): uPlot.Series => {
          const ink = model.panels.palette.inkOf(one);
          return {
            label: one.id,
            show: isShown(one),
            stroke: stroke(ink, look.dark),
            width: 1.5,
            dash: ink.dash,
            spanGaps: false,
            points: { show: false },
          };
        }),
      ],
      hooks: {
        drawAxes: [(plot) => this.paint(plot, drawGround)],
        draw: [(plot) => this.paint(plot, drawMarks)],
        setCursor: [
          (plot) => {
            if (this.quiet) return;
            const left = plot.cursor.left ?? -10;
            model.time.setCursor(left < 0 ? null : plot.posToVal(left, "x"));
          },
        ],
        setSelect: [
          (plot) => {
            const { left, width } = plot.select;
            if (width < 4) return;
            const span = { from: plot.posToVal(left, "x"), to: plot.posToVal(left + width, "x") };
            plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
            if (this.asksWhy) model.explain(span);
            else model.time.goTo(span);
          },
        ],
      },
    };
  }

  // ---- wheel, shift-drag, fingers -------------------------------------------------

  private gestures(): void {
    const on = <K extends keyof HTMLElementEventMap>(kind: K, listener: (event: HTMLElementEventMap[K]) => void, passive = true): void => {
      this.host.addEventListener(kind, listener, { passive });
      this.stops.push(() => this.host.removeEventListener(kind, listener));
    };
    on("wheel", (event) => this.wheel(event), false);
    const fingers = new Map<number, number>();
    let start: { span: Span; fingers: Map<number, number> } | null = null;
    const begin = (): void => {
      start = { span: { ...this.model.time.span }, fingers: new Map(fingers) };
    };
    on("pointerdown", (event) => {
      const pans = event.pointerType === "touch" || event.shiftKey || event.button === 1;
      if (!pans || !this.plot) return;
      fingers.set(event.pointerId, event.clientX);
      this.host.setPointerCapture(event.pointerId);
      begin();
    });
    on("pointermove", (event) => {
      if (!fingers.has(event.pointerId) || !start || !this.plot) return;
      fingers.set(event.pointerId, event.clientX);
      this.model.time.drag(this.dragged(start.span, start.fingers, fingers));
    });
    const end = (event: PointerEvent): void => {
      if (!fingers.delete(event.pointerId)) return;
      if (fingers.size > 0) {
        begin();
        return;
      }
      start = null;
      this.model.time.settle();
    };
    on("pointerup", end);
    on("pointercancel", end);
  }

  private dragged(span: Span, before: Map<number, number>, after: Map<number, number>): Span {
    const box = this.plot?.over.getBoundingClientRect();
    if (!box || box.width === 0) return span;
    const perPixel = (span.to - span.from) / box.width;
    const [a, b] = [...before.keys()];
    const moved = (id: number): number => (after.get(id) ?? 0) - (before.get(id) ?? 0);
    if (a !== undefined && b === undefined) return shift(span, -moved(a) * perPixel);
    if (a === undefined || b === undefined) return span;
    const gap = (places: Map<number, number>): number => Math.max(Math.abs((places.get(a) ?? 0) - (places.get(b) ?? 0)), 10);
    const middle = ((before.get(a) ?? 0) + (before.get(b) ?? 0)) / 2 - box.left;
    const all = this.model.time.bounds;
    return shift(zoom(span, gap(before) / gap(after), span.from + middle * perPixel, (all.to - all.from) * 1.5), (-(moved(a) + moved(b)) / 2) * perPixel);
  }

  private wheel(event: WheelEvent): void {
    if (!this.plot || event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      this.model.time.panBy(Math.sign(event.deltaX || event.deltaY) * 0.1);
      return;
    }
    const box = this.plot.over.getBoundingClientRect();
    this.model.time.zoomBy(event.deltaY > 0 ? 1.25 : 0.8, this.plot.posToVal(event.clientX - box.left, "x"));
  }
}
