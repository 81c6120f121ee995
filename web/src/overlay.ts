/** What is drawn on a panel besides its lines: min/max bands, gaps, limits and findings. */

import type uPlot from "uplot";
import { seriesBefore, type Earlier } from "./earlier";
import { limitAt, matters, type FindingRow } from "./findings";
import { quantity } from "./format";
import { places, type Value } from "./series";
import type { Look } from "./theme";
import type { Span } from "./time";
import type { SeriesJson, TimeseriesJson } from "./types";

export interface Drawn {
  answer: TimeseriesJson;
  shown: SeriesJson[];
  colour(series: SeriesJson): string;
  found: FindingRow[];
  earlier: Earlier | null;
  chosen: FindingRow | null;
  look: Look;
  unit: string;
  /** Where sums stand on each other. */
  stacked: Stacked | null;
  /** The selection that is explained. */
  why: Span | null;
  threshold: number | null;
  page: OnPage | null;
}

/** The upper edge of each series, and the edge below it (null: the axis). */
export interface Stacked {
  columns: Value[][];
  below: (Value[] | null)[];
}

/** On the page of one container: its kills, and what it requests of this metric. */
export interface OnPage {
  kills: number[];
  request: number | null;
}

type Pen = CanvasRenderingContext2D;

/** Under the lines. */
export function drawGround(plot: uPlot, drawn: Drawn): void {
  inside(plot, (pen) => {
    drawSelection(plot, pen, drawn);
    drawGaps(plot, pen, drawn);
    drawPeriods(plot, pen, drawn);
    for (const series of drawn.shown) drawEarlier(plot, pen, drawn, series);
    if (drawn.stacked) drawStack(plot, pen, drawn, drawn.stacked);
    else for (const series of drawn.shown) drawBand(plot, pen, drawn.answer, series, drawn.colour(series), bandAlpha(drawn.shown.length));
  });
}

/** Over the lines. */
export function drawMarks(plot: uPlot, drawn: Drawn): void {
  inside(plot, (pen) => {
    if (!drawn.stacked) for (const series of drawn.shown) drawLone(plot, pen, drawn.answer, series, drawn.colour(series));
    drawLimits(plot, pen, drawn);
    drawThreshold(plot, pen, drawn);
    drawPage(plot, pen, drawn);
    for (const found of drawn.found) {
      const chosen = found.key === drawn.chosen?.key;
      if (!chosen && (drawn.chosen !== null || !matters(found))) continue;
      if (found.finding.kind === "changepoint") drawChange(plot, pen, drawn, found, chosen);
      if (found.finding.kind === "trend") drawTrend(plot, pen, drawn, found, chosen);
      if (found.finding.kind === "anomaly" && chosen) drawAnomaly(plot, pen, drawn, found);
    }
  });
}

function inside(plot: uPlot, draw: (pen: Pen) => void): void {
  const pen = plot.ctx;
  const { left, top, width, height } = plot.bbox;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, width, height);
  pen.clip();
  draw(pen);
  pen.restore();
}

function x(plot: uPlot, at: number): number {
  return plot.valToPos(at, "x", true);
}

function y(plot: uPlot, value: number): number {
  return plot.valToPos(value, "y", true);
}

function ratio(): number {
  return window.devicePixelRatio || 1;
}

/** The line of earlier, where it would be today: faint and dotted, so that nobody takes it for now. */
function drawEarlier(plot: uPlot, pen: Pen, drawn: Drawn, series: SeriesJson): void {
  const { earlier } = drawn;
  const before = earlier ? seriesBefore(earlier, series) : undefined;
  if (!earlier || !before) return;
  pen.save();
  setLine(pen, drawn.colour(series), 1.5, [2, 3]);
  pen.globalAlpha = 0.55;
  pen.beginPath();
  let down = false;
  earlier.answer.time.forEach((at, place) => {
    const value = before.mean[place];
    if (value == null) down = false;
    else {
      const [left, top] = [x(plot, at + earlier.seconds), y(plot, value)];
      if (down) pen.lineTo(left, top);
      else pen.moveTo(left, top);
      down = true;
    }
  });
  pen.stroke();
  pen.restore();
}

/** The selection, and before it the time that it is compared with. */
function drawSelection(plot: uPlot, pen: Pen, { why, look }: Drawn): void {
  if (!why) return;
  const { top, height } = plot.bbox;
  const [before, from, to] = [x(plot, 2 * why.from - why.to), x(plot, why.from), x(plot, why.to)];
  pen.save();
  pen.fillStyle = look.note;
  pen.globalAlpha = 0.16;
  pen.fillRect(from, top, to - from, height);
  pen.globalAlpha = 0.05;
  pen.fillRect(before, top, from - before, height);
  pen.restore();
}

/** Areas on each other: the top edge is the sum of all. */
function drawStack(plot: uPlot, pen: Pen, drawn: Drawn, { columns, below }: Stacked): void {
  const { time } = drawn.answer;
  const floor = y(plot, 0);
  pen.save();
  pen.globalAlpha = 0.45;
  drawn.answer.series.forEach((series, index) => {
    if (!drawn.shown.includes(series)) return;
    const column = columns[index] ?? [];
    const under = below[index] ?? null;
    const edge = (place: number): number => (under?.[place] == null ? floor : y(plot, under[place]));
    pen.fillStyle = drawn.colour(series);
    let run: number[] = [];
    const flush = (): void => {
      if (run.length > 1) {
        pen.beginPath();
        for (const place of run) pen.lineTo(x(plot, time[place] ?? 0), y(plot, column[place] ?? 0));
        for (const place of run.reverse()) pen.lineTo(x(plot, time[place] ?? 0), edge(place));
        pen.fill();
      }
      run = [];
    };
    column.forEach((value, place) => (value === null ? flush() : run.push(place)));
    flush();
  });
  pen.restore();
}

function drawThreshold(plot: uPlot, pen: Pen, { threshold, unit, look }: Drawn): void {
  if (threshold === null) return;
  const height = Math.round(y(plot, threshold)) + 0.5;
  setLine(pen, look.note, 1.5, [8, 4]);
  drawLine(pen, plot.bbox.left, height, plot.bbox.left + plot.bbox.width, height);
  label(pen, `threshold ${quantity(threshold, unit)}`, plot.bbox.left + plot.bbox.width - 30 * ratio(), height - 8 * ratio(), "right", look, look.note);
}

/** Kill ticks over the whole height, and what was requested. */
function drawPage(plot: uPlot, pen: Pen, { page, unit, look }: Drawn): void {
  if (!page) return;
  const { left, top, width, height } = plot.bbox;
  for (const at of page.kills) {
    const place = Math.round(x(plot, at)) + 0.5;
    setLine(pen, look.harm, 1, []);
    drawLine(pen, place, top, place, top + height);
    label(pen, "killed", place + 4 * ratio(), top + 8 * ratio(), "left", look, look.harm);
  }
  if (page.request === null) return;
  const level = Math.round(y(plot, page.request)) + 0.5;
  setLine(pen, look.faint, 1, [4, 4]);
  drawLine(pen, left, level, left + width, level);
  label(pen, `request ${quantity(page.request, unit)}`, left + 6 * ratio(), level - 8 * ratio(), "left", look, look.faint);
}

/** The more bands lie over each other, the fainter each is: the lines stay readable. */
function bandAlpha(bands: number): number {
  return bands <= 2 ? 0.18 : bands <= 4 ? 0.1 : 0.05;
}

function drawBand(plot: uPlot, pen: Pen, answer: TimeseriesJson, series: SeriesJson, colour: string, alpha: number): void {
  const [first, last] = places(answer.time, { from: plot.scales["x"]?.min ?? 0, to: plot.scales["x"]?.max ?? 0 });
  pen.fillStyle = colour;
  pen.globalAlpha = alpha;
  let run: number[] = [];
  const flush = (): void => {
    if (run.length > 1) {
      pen.beginPath();
      for (const place of run) pen.lineTo(x(plot, answer.time[place] ?? 0), y(plot, series.max[place] ?? 0));
      for (const place of run.reverse()) pen.lineTo(x(plot, answer.time[place] ?? 0), y(plot, series.min[place] ?? 0));
      pen.fill();
    }
    run = [];
  };
  for (let place = first; place <= last; place += 1) {
    if (series.min[place] === undefined) continue;
    if (series.min[place] == null || series.max[place] == null) flush();
    else run.push(place);
  }
  flush();
  pen.globalAlpha = 1;
}

/** A sample without neighbours makes no line: it is drawn as a dot. */
function drawLone(plot: uPlot, pen: Pen, answer: TimeseriesJson, series: SeriesJson, colour: string): void {
  const [first, last] = places(answer.time, { from: plot.scales["x"]?.min ?? 0, to: plot.scales["x"]?.max ?? 0 });
  const size = 3 * ratio();
  pen.fillStyle = colour;
  for (let place = first; place <= last; place += 1) {
    const value = series.mean[place];
    if (value == null || series.mean[place - 1] != null || series.mean[place + 1] != null) continue;
    pen.fillRect(x(plot, answer.time[place] ?? 0) - size / 2, y(plot, value) - size / 2, size, size);
  }
}

/** A gap of all series is hatched over the whole height, a gap of one series as a strip at the bottom. */
function drawGaps(plot: uPlot, pen: Pen, drawn: Drawn): void {
  const { top, height } = plot.bbox;
  const strip = 4 * ratio();
  const [first] = drawn.shown;
  if (!first) return;
  const shared = first.gaps.filter((gap) => drawn.shown.every((series) => series.gaps.some((other) => other.from <= gap.from + 2 && other.to >= gap.to - 2)));
  for (const gap of shared) hatch(plot, pen, gap.from, gap.to, top, height, drawn.look.faint);
  let row = 0;
  for (const series of drawn.shown) {
    const own = series.gaps.filter((gap) => !shared.some((other) => Math.abs(other.from - gap.from) < 2 && Math.abs(other.to - gap.to) < 2));
    if (own.length === 0) continue;
    for (const gap of own) hatch(plot, pen, gap.from, gap.to, top + height - strip * (row + 1), strip - ratio(), drawn.colour(series));
    row = (row + 1) % 4;
  }
}

function hatch(plot: uPlot, pen: Pen, from: number, to: number, top: number, height: number, colour: string): void {
  const bbox = plot.bbox;
  const left = Math.max(x(plot, from), bbox.left);
  const right = Math.min(x(plot, to), bbox.left + bbox.width);
  if (right - left < 1) return;
  pen.save();
  pen.beginPath();
  pen.rect(left, top, right - left, height);
  pen.clip();
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.4;
  pen.lineWidth = ratio();
  pen.beginPath();
  const step = 7 * ratio();
  for (let place = left - height - (left % step); place < right; place += step) {
    pen.moveTo(place, top + height);
    pen.lineTo(place + height, top);
  }
  pen.stroke();
  pen.restore();
}

function drawPeriods(plot: uPlot, pen: Pen, drawn: Drawn): void {
  const found = drawn.chosen;
  const period = found?.finding.period_seconds;
  if (!found || found.finding.kind !== "periodicity" || !period || !drawn.shown.some((series) => series.id === found.id)) return;
  const { top, height } = plot.bbox;
  const scale = plot.scales["x"];
  const start = Math.max(found.finding.from, (scale?.min ?? 0) - period);
  const end = Math.min(found.finding.to, scale?.max ?? 0);
  const skip = Math.floor((start - found.finding.from) / period);
  // Bands narrower than three pixels would merge into one grey.
  if (x(plot, start + period) - x(plot, start) < 3 * ratio()) return;
  pen.fillStyle = drawn.look.note;
  pen.globalAlpha = 0.12;
  for (let cycle = Math.max(skip, 0); ; cycle += 1) {
    const from = found.finding.from + cycle * period;
    if (from >= end) break;
    if (cycle % 2) continue;
    const left = x(plot, from);
    pen.fillRect(left, top, x(plot, Math.min(from + period, end)) - left, height);
  }
  pen.globalAlpha = 1;
}

function drawChange(plot: uPlot, pen: Pen, drawn: Drawn, found: FindingRow, chosen: boolean): void {
  const { finding } = found;
  if (finding.at === null || !drawn.shown.some((series) => series.id === found.id)) return;
  const { top, height } = plot.bbox;
  const place = Math.round(x(plot, finding.at)) + 0.5;
  setLine(pen, chosen ? drawn.look.text : drawn.look.note, chosen ? 1.5 : 1, chosen ? [] : [3, 3]);
  drawLine(pen, place, top, place, top + height);
  const up = (finding.after ?? 0) >= (finding.before ?? 0);
  triangle(pen, place, up ? top + 8 * ratio() : top + 2 * ratio(), up, drawn.look.note);
  if (!chosen) return;
  const room = 70 * ratio();
  setLine(pen, drawn.look.text, 1.5, [5, 3]);
  if (finding.before !== null) level(plot, pen, place - room, place, finding.before, `before ${quantity(finding.before, drawn.unit)}`, "right", drawn.look);
  if (finding.after !== null) level(plot, pen, place, place + room, finding.after, `after ${quantity(finding.after, drawn.unit)}`, "left", drawn.look);
}

function level(plot: uPlot, pen: Pen, from: number, to: number, value: number, words: string, align: CanvasTextAlign, look: Look): void {
  const height = y(plot, value);
  drawLine(pen, from, height, to, height);
  label(pen, words, align === "right" ? to - 5 * ratio() : from + 5 * ratio(), Math.max(height - 7 * ratio(), plot.bbox.top + 8 * ratio()), align, look);
}

function drawTrend(plot: uPlot, pen: Pen, drawn: Drawn, found: FindingRow, chosen: boolean): void {
  const { finding } = found;
  const series = drawn.shown.find((one) => one.id === found.id);
  if (!series || finding.slope_per_second == null || finding.before === null) return;
  const slope = finding.slope_per_second;
  const reaches = limitAt(finding);
  const far = plot.scales["x"]?.max ?? finding.to;
  const end = reaches === null ? finding.to : Math.min(reaches, Math.max(far, finding.to));
  setLine(pen, chosen ? drawn.look.text : drawn.colour(series), chosen ? 1.5 : 1, [6, 4]);
  drawLine(pen, x(plot, finding.from), y(plot, finding.before), x(plot, end), y(plot, finding.before + slope * (end - finding.from)));
  if (!chosen) return;
  if (reaches !== null && reaches <= far && finding.limit != null) {
    const place = x(plot, reaches);
    pen.setLineDash([]);
    pen.fillStyle = drawn.look.harm;
    pen.beginPath();
    pen.arc(place, y(plot, finding.limit), 4 * ratio(), 0, 2 * Math.PI);
    pen.fill();
  }
}

function drawAnomaly(plot: uPlot, pen: Pen, drawn: Drawn, found: FindingRow): void {
  const left = x(plot, found.finding.from);
  pen.fillStyle = drawn.look.harm;
  pen.globalAlpha = 0.1;
  pen.fillRect(left, plot.bbox.top, x(plot, found.finding.to) - left, plot.bbox.height);
  pen.globalAlpha = 1;
}

/** The limit that is drawn: of the only series shown, or of the trend that was chosen. */
export function limitShown(drawn: Pick<Drawn, "shown" | "chosen" | "answer">): number | null {
  const one = drawn.shown.length === 1 ? drawn.shown[0] : undefined;
  if (one?.limit != null && Number.isFinite(one.limit)) {
    // An axis up to a limit far above the curve would make the curve flat.
    const high = one.max.reduce((most: number, value) => Math.max(most, value ?? 0), 0);
    if (high > one.limit * 0.4) return one.limit;
  }
  const { chosen } = drawn;
  if (chosen?.finding.kind === "trend" && chosen.finding.limit != null && drawn.shown.some((series) => series.id === chosen.id)) return chosen.finding.limit;
  return null;
}

function drawLimits(plot: uPlot, pen: Pen, drawn: Drawn): void {
  const limit = limitShown(drawn);
  if (limit === null) return;
  const height = Math.round(y(plot, limit)) + 0.5;
  setLine(pen, drawn.look.harm, 1, [2, 3]);
  drawLine(pen, plot.bbox.left, height, plot.bbox.left + plot.bbox.width, height);
  label(pen, `limit ${quantity(limit, drawn.unit)}`, plot.bbox.left + 6 * ratio(), height + 9 * ratio(), "left", drawn.look, drawn.look.harm);
}

function drawLine(pen: Pen, fromX: number, fromY: number, toX: number, toY: number): void {
  pen.beginPath();
  pen.moveTo(fromX, fromY);
  pen.lineTo(toX, toY);
  pen.stroke();
}

function setLine(pen: Pen, colour: string, width: number, dash: number[]): void {
  pen.strokeStyle = colour;
  pen.lineWidth = width * ratio();
  pen.setLineDash(dash.map((part) => part * ratio()));
}

function triangle(pen: Pen, place: number, tip: number, up: boolean, colour: string): void {
  const size = 5 * ratio();
  pen.save();
  pen.setLineDash([]);
  pen.fillStyle = colour;
  pen.beginPath();
  pen.moveTo(place, up ? tip - size : tip + size * 1.6);
  pen.lineTo(place - size, up ? tip + size * 0.6 : tip);
  pen.lineTo(place + size, up ? tip + size * 0.6 : tip);
  pen.fill();
  pen.restore();
}

function label(pen: Pen, words: string, left: number, middle: number, align: CanvasTextAlign, look: Look, colour = look.text): void {
  pen.save();
  pen.font = `${12 * ratio()}px system-ui, sans-serif`;
  pen.textAlign = align;
  pen.textBaseline = "middle";
  pen.setLineDash([]);
  pen.lineWidth = 3 * ratio();
  pen.strokeStyle = look.ground;
  pen.strokeText(words, left, middle);
  pen.fillStyle = colour;
  pen.fillText(words, left, middle);
  pen.restore();
}
