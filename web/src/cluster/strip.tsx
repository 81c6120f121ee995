/** The cells of one node as a strip: each at its time, hatched where nothing was measured. */

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import type { Span } from "../time";
import { colourOf, type Scale } from "./ramp";

export interface StripCells {
  cells: (number | null)[];
  start: number;
  step: number;
}

/** Where each cell is, in pixels of a strip of this width; what lies outside the span is left out. */
export function placeCells({ cells, start, step }: StripCells, span: Span, width: number): { x: number; width: number; value: number | null }[] {
  const scale = width / (span.to - span.from);
  const found: { x: number; width: number; value: number | null }[] = [];
  cells.forEach((value, place) => {
    const from = start + place * step;
    if (from + step <= span.from || from >= span.to) return;
    const x = Math.round((Math.max(from, span.from) - span.from) * scale);
    const end = Math.round((Math.min(from + step, span.to) - span.from) * scale);
    if (end > x) found.push({ x, width: end - x, value });
  });
  return found;
}

export function Strip({ data, span, scale, dark, label, away }: { data: StripCells; span: Span; scale: Scale; dark: boolean; label: string; away: boolean }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const draw = useRef<() => void>(() => undefined);
  // In the frame that shows its row's figures.
  useLayoutEffect(() => {
    const element = canvas.current;
    if (!element) return;
    draw.current = () => paint(element, data, span, scale, dark, away);
    draw.current();
  }, [data.cells, data.start, data.step, span.from, span.to, scale, dark, away]);
  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    // An observer also tells the size that it finds at first: a hundred strips would be drawn twice.
    const watch = new ResizeObserver(() => { if (!fits(element)) draw.current(); });
    watch.observe(element);
    return () => watch.disconnect();
  }, []);
  return <canvas ref={canvas} class="strip" role="img" aria-label={label} />;
}

function ratioOf(element: HTMLCanvasElement): number {
  return element.ownerDocument.defaultView?.devicePixelRatio ?? 1;
}

function sizeOf(element: HTMLCanvasElement): [number, number] {
  const ratio = ratioOf(element);
  return [Math.max(1, Math.round(element.clientWidth * ratio)), Math.max(1, Math.round(element.clientHeight * ratio))];
}

function fits(element: HTMLCanvasElement): boolean {
  const [width, height] = sizeOf(element);
  return element.width === width && element.height === height;
}

function paint(element: HTMLCanvasElement, data: StripCells, span: Span, scale: Scale, dark: boolean, away: boolean): void {
  const ratio = ratioOf(element);
  const [width, height] = sizeOf(element);
  if (element.width !== width) element.width = width;
  if (element.height !== height) element.height = height;
  const pen = element.getContext("2d");
  if (!pen) return;
  const cells = placeCells(data, span, width);
  hatch(pen, width, height, dark, away, isCovered(cells, width));
  pen.globalAlpha = away ? 0.45 : 1;
  for (const piece of joinCells(cells, scale, dark, ratio)) {
    pen.fillStyle = piece.colour;
    pen.fillRect(piece.x, 0, piece.width, height);
  }
  pen.globalAlpha = 1;
}

/** Neighbours of one colour are one piece. Between cells that are wide enough is a hair: minutes can be counted. */
export function joinCells(cells: { x: number; width: number; value: number | null }[], scale: Scale, dark: boolean, hair: number): { x: number; width: number; colour: string }[] {
  const found: { x: number; width: number; colour: string }[] = [];
  for (const { x, width, value } of cells) {
    if (value === null) continue;
    const colour = colourOf(value, scale, dark);
    const last = found.at(-1);
    if (width > 5 * hair) found.push({ x, width: width - hair, colour });
    else if (last?.colour === colour && last.x + last.width === x) last.width += width;
    else found.push({ x, width, colour });
  }
  return found;
}

/** Whether every pixel has a value: then nothing of the hatching would be seen. */
export function isCovered(cells: { x: number; width: number; value: number | null }[], width: number): boolean {
  return cells.every((cell) => cell.value !== null) && cells.reduce((sum, cell) => sum + cell.width, 0) >= width;
}

/** Nothing measured is not zero: zero has a colour. */
function hatch(pen: CanvasRenderingContext2D, width: number, height: number, dark: boolean, away: boolean, covered: boolean): void {
  pen.fillStyle = dark ? "#14181e" : "#f4f5f8";
  pen.fillRect(0, 0, width, height);
  // Lines cost more than all cells together; those of a node that is away shine through.
  if (covered && !away) return;
  pen.strokeStyle = away ? (dark ? "#4a525e" : "#b8bec8") : dark ? "#262c35" : "#dfe2e8";
  pen.lineWidth = 1;
  pen.beginPath();
  for (let x = -height; x < width; x += 7) {
    pen.moveTo(x, height);
    pen.lineTo(x + height, 0);
  }
  pen.stroke();
}
