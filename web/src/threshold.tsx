/** A threshold of a panel: dragged or moved by arrow keys, and copied as an alert for Prometheus. */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Chart } from "./chart";
import { alertRule } from "./copy";
import { quantity, words } from "./format";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { queryOf } from "./panel-query";
import { useSignal } from "./signal";

/** Of the axis: a step of an arrow key. */
const STEP = 0.02;

export function Threshold({ model, panel, chart }: { model: Model; panel: Panel; chart: () => Chart | null }) {
  useSignal(model.time.moved);
  const [, draw] = useState(0);
  const drag = useRef(false);
  const value = model.view.thresholds[panel.key];
  // The chart has its new axis a moment after the value.
  useEffect(() => {
    const frame = requestAnimationFrame(() => draw((count) => count + 1));
    return () => cancelAnimationFrame(frame);
  }, [value, panel.version]);
  const made = chart();
  const answer = panel.slot.value;
  if (value === undefined || !made || !answer) return null;
  const top = made.topOf(value);
  const set = (next: number): void => model.setThreshold(panel, Math.max(0, Number(next.toPrecision(3))));
  const range = Math.abs(made.valueAt(0) - made.valueAt(100)) / 100;
  const height = (made.canvas()?.clientHeight ?? 150) - 24;
  const byKey = (event: KeyboardEvent): void => {
    const by = { ArrowUp: 1, ArrowDown: -1, PageUp: 5, PageDown: -5 }[event.key];
    if (event.key === "Delete") model.setThreshold(panel, null);
    else if (!by) return;
    else set(value + by * STEP * range * height);
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <span class="threshold" style={{ top: `${top}px` }}>
      <button type="button" class="handle" role="slider" aria-orientation="vertical" aria-label={`threshold of ${words(panel.choice.metric)}`} aria-valuenow={value} aria-valuetext={quantity(value, answer.unit)} title="drag, or arrow keys; Delete removes it" onKeyDown={byKey}
        onPointerDown={(event) => { event.stopPropagation(); drag.current = true; event.currentTarget.setPointerCapture(event.pointerId); }}
        onPointerMove={(event) => { const box = made.canvas()?.getBoundingClientRect(); if (drag.current && box) set(made.valueAt(event.clientY - box.top)); }}
        onPointerUp={() => { drag.current = false; }}>↕</button>
      <button type="button" class="as-alert" onClick={() => copyAlert(model, panel, value, answer.unit)}>copy as alert</button>
      <button type="button" class="plain" aria-label="remove the threshold" onClick={() => model.setThreshold(panel, null)}>×</button>
    </span>
  );
}

function copyAlert(model: Model, panel: Panel, value: number, unit: string): void {
  const rule = alertRule(queryOf(model, panel), value, unit);
  if (rule === null) {
    model.say(`${panel.choice.metric} is not on /metrics under a name of its own: there is nothing that Prometheus could compare.`, true);
    return;
  }
  navigator.clipboard.writeText(rule).then(
    () => model.say("The alert is in the clipboard: put it under `rules:` of a group."),
    () => model.say(rule),
  );
}

/** A first place for it: four fifths of what is drawn. */
export function firstThreshold(panel: Panel): number {
  const values = panel.slot.value?.series.flatMap((series) => series.max.filter((value) => value !== null)) ?? [];
  const most = values.reduce((high, value) => Math.max(high, value), 0);
  return Number(((most || 1) * 0.8).toPrecision(2));
}
