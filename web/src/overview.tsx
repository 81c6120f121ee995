/** The overview: all data there are, and the window that is drawn. Drag the window, one of its ends, or a new one. */

import { useEffect, useRef } from "preact/hooks";
import { AXIS_PIXELS, RIGHT_PIXELS } from "./chart";
import type { Model } from "./model";
import { axisRange, bounds } from "./series";
import { useSignal } from "./signal";
import { isDark, stroke } from "./theme";
import { clamp, renderSpan, shift, SHORTEST_SECONDS, type Span } from "./time";

type Grip = "move" | "from" | "to" | "new";

export function Overview({ model }: { model: Model }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const track = useRef<HTMLDivElement>(null);
  useSignal(model.time.moved);
  const { span, bounds: all } = model.time;
  const width = all.to - all.from;
  const share = (at: number): number => Math.min(Math.max((at - all.from) / width, 0), 1);
  useEffect(() => paint(canvas.current, model), [model, model.data.overview.value, model.view.theme, model.data.events.value]);
  useEffect(() => {
    if (!track.current) return;
    const observer = new ResizeObserver(() => paint(canvas.current, model));
    observer.observe(track.current);
    return () => observer.disconnect();
  }, [model]);
  const left = share(span.from) * 100;
  const wide = Math.max(share(span.to) * 100 - left, 0.3);
  return (
    <section class="overview" aria-label="overview" style={{ paddingRight: `calc(var(--legend) + ${RIGHT_PIXELS}px)` }}>
      <span class="lane-name" style={{ width: `${AXIS_PIXELS}px` }}>overview</span>
      <div class="track" ref={track} onPointerDown={(event) => grab(event, model, track.current)}>
        <canvas ref={canvas} aria-hidden="true" />
        <div class="shade" style={{ left: "0%", width: `${left}%` }} />
        <div class="shade" style={{ left: `${left + wide}%`, width: `${100 - left - wide}%` }} />
        <div class="window" data-grip="move" style={{ left: `${left}%`, width: `${wide}%` }} role="slider" tabIndex={0} aria-label="the window in the overview; arrows move it"
          aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(left + wide / 2)} aria-valuetext={renderSpan(span, model.view.utc)} onKeyDown={(event) => slide(event, model)}>
          <span class="grip from" data-grip="from" /><span class="grip to" data-grip="to" />
        </div>
      </div>
    </section>
  );
}

function slide(event: KeyboardEvent, model: Model): void {
  const step = { ArrowLeft: -0.25, ArrowRight: 0.25, PageUp: -1, PageDown: 1 }[event.key];
  if (!step) return;
  event.preventDefault();
  event.stopPropagation();
  model.time.panBy(step);
}

function grab(event: PointerEvent, model: Model, track: HTMLElement | null): void {
  if (!track || event.button !== 0) return;
  const grip = ((event.target as HTMLElement).dataset["grip"] ?? "new") as Grip;
  const box = track.getBoundingClientRect();
  const all = model.time.bounds;
  const perPixel = (all.to - all.from) / box.width;
  const start = { ...model.time.span };
  const first = all.from + (event.clientX - box.left) * perPixel;
  let last = { ...start };
  let moved = false;
  track.setPointerCapture(event.pointerId);
  const move = (next: PointerEvent): void => {
    const by = (next.clientX - event.clientX) * perPixel;
    moved ||= Math.abs(next.clientX - event.clientX) > 3;
    if (!moved) return;
    last = clamp(pulled(grip, start, first, by), all);
    model.time.drag(last);
  };
  const released = new AbortController();
  const { signal } = released;
  const end = (): void => {
    released.abort();
    if (moved) model.time.settle();
    // A click beside the window moves the window there.
    else if (grip === "new") model.time.goTo(clamp(shift(start, first - (start.from + start.to) / 2), all));
  };
  track.addEventListener("pointermove", move, { signal });
  track.addEventListener("pointerup", end, { signal });
  track.addEventListener("pointercancel", end, { signal });
}

export function pulled(grip: Grip, start: Span, first: number, by: number): Span {
  switch (grip) {
    case "move":
      return shift(start, by);
    case "from":
      return { from: Math.min(start.from + by, start.to - SHORTEST_SECONDS), to: start.to };
    case "to":
      return { from: start.from, to: Math.max(start.to + by, start.from + SHORTEST_SECONDS) };
    case "new":
      return { from: Math.min(first, first + by), to: Math.max(first + SHORTEST_SECONDS, first, first + by) };
  }
}

function paint(canvas: HTMLCanvasElement | null, model: Model): void {
  const answer = model.data.overview.value;
  const box = canvas?.parentElement;
  if (!canvas || !box) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.max(1, Math.round(box.clientWidth * ratio));
  canvas.height = Math.max(1, Math.round(box.clientHeight * ratio));
  const pen = canvas.getContext("2d");
  if (!pen || !answer) return;
  const all = model.time.bounds;
  const [low, high] = axisRange(bounds(answer, () => true, all), null);
  const x = (at: number): number => ((at - all.from) / (all.to - all.from)) * canvas.width;
  const y = (value: number): number => canvas.height - ((value - low) / (high - low)) * canvas.height;
  pen.lineWidth = ratio;
  for (const series of answer.series) {
    pen.strokeStyle = stroke(model.panels.palette.inkOf(series), isDark(model.view.theme));
    pen.beginPath();
    let down = false;
    answer.time.forEach((at, place) => {
      const value = series.max[place] ?? series.mean[place];
      if (value == null) down = false;
      else {
        if (down) pen.lineTo(x(at), y(value));
        else pen.moveTo(x(at), y(value));
        down = true;
      }
    });
    pen.stroke();
  }
}
