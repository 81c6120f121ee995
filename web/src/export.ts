/** Files that the page makes by itself: CSV of what is drawn, and a picture of the panels. */

import type { SeriesJson, TimeseriesJson } from "./types";
import { renderMoment, type Span } from "./time";

/** A cell after RFC 4180. A quote is put before a name that a spreadsheet would run as a formula. */
export function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

export function csv(answer: TimeseriesJson, shown: (series: SeriesJson) => boolean, span: Span): string {
  const rows = ["time,metric,unit,id,name,mean,min,max"];
  for (const series of answer.series.filter(shown)) {
    answer.time.forEach((at, place) => {
      if (at < span.from || at > span.to) return;
      const value = (from: (number | null)[]): string => String(from[place] ?? "");
      // An empty cell means not measured.
      rows.push([renderMoment(at), csvCell(answer.metric), answer.unit, csvCell(series.id), csvCell(series.name), value(series.mean), value(series.min), value(series.max)].join(","));
    });
  }
  return `${rows.join("\r\n")}\r\n`;
}

export interface Picture {
  title: string;
  sentence: string;
  canvas: HTMLCanvasElement;
  legend: { name: string; value: string; colour: string }[];
}

export function drawPicture(pictures: Picture[], head: string, text: string, ground: string): HTMLCanvasElement {
  const ratio = window.devicePixelRatio || 1;
  const legendWidth = 260 * ratio;
  const titleHeight = 40 * ratio;
  const width = Math.max(...pictures.map((one) => one.canvas.width)) + legendWidth;
  const height = titleHeight + pictures.reduce((sum, one) => sum + one.canvas.height + titleHeight, 0);
  const out = document.createElement("canvas");
  out.width = width;
  out.height = height;
  const pen = out.getContext("2d");
  if (!pen) return out;
  pen.fillStyle = ground;
  pen.fillRect(0, 0, width, height);
  const write = (words: string, left: number, top: number, weight = "400", colour = text): void => {
    pen.fillStyle = colour;
    pen.font = `${weight} ${13 * ratio}px system-ui, sans-serif`;
    pen.fillText(words, left, top);
  };
  write(head, 12 * ratio, 25 * ratio, "600");
  let top = titleHeight;
  for (const one of pictures) {
    write(one.title, 12 * ratio, top + 16 * ratio, "600");
    write(one.sentence, 12 * ratio, top + 33 * ratio);
    pen.drawImage(one.canvas, 0, top + titleHeight);
    one.legend.slice(0, 10).forEach((row, index) => {
      const line = top + titleHeight + (16 + index * 18) * ratio;
      write("■", one.canvas.width + 10 * ratio, line, "400", row.colour);
      write(`${row.value}  ${row.name}`.slice(0, 34), one.canvas.width + 26 * ratio, line);
    });
    top += one.canvas.height + titleHeight;
  }
  return out;
}

export function save(name: string, content: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function fileName(node: string, metric: string, span: Span, ending: string): string {
  const clean = `nodescope-${node}-${metric}-${renderMoment(span.from)}`.replace(/[^A-Za-z0-9._-]+/g, "-");
  return `${clean.slice(0, 120)}.${ending}`;
}
