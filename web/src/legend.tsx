/** Who is which line, the largest under the cursor first. A click isolates, Shift-click hides. */

import { useEffect, useState } from "preact/hooks";
import type { Chart } from "./chart";
import { brief, exact, plain, quantity, shorten } from "./format";
import type { Model, Panel } from "./model";
import { gapAt, nearest, newestReadings, oneEach, readings, type Reading } from "./series";
import { isDark, stroke } from "./theme";

function useCursor(model: Model): number | null {
  const [at, set] = useState<number | null>(model.cursor);
  useEffect(() => {
    let waiting = 0;
    const stop = model.cursorMoved.on(() => {
      waiting ||= requestAnimationFrame(() => {
        waiting = 0;
        set(model.cursor);
      });
    });
    return () => {
      stop();
      cancelAnimationFrame(waiting);
    };
  }, [model]);
  return at;
}

export function Legend({ model, panel, chart }: { model: Model; panel: Panel; chart: () => Chart | null }) {
  const at = useCursor(model);
  const answer = panel.slot.value;
  if (!answer) return <div class="legend" />;
  const place = at === null ? -1 : nearest(answer.time, at);
  const rows = oneEach(place < 0 ? newestReadings(answer, model.span) : readings(answer, place), (series) => model.inkKey(series));
  return (
    <ul class="legend" aria-label="legend" onPointerLeave={() => chart()?.accent(null)}>
      {rows.map((row) => <Line key={model.inkKey(row.series)} model={model} row={row} unit={answer.unit} at={at} chart={chart} dash={model.palette.ink(model.inkKey(row.series)).dash.length > 0} />)}
      {answer.missing.map((one) => <li key={one.id} class="faint missing"><bdi>{plain(shorten(one.id, 14))}</bdi>: {one.reason}</li>)}
    </ul>
  );
}

/** What tells it apart where its name is for people: a GPU's uuid. */
function identity(series: Reading["series"]): string {
  const { uuid } = series.labels;
  return uuid ? `\n${plain(uuid)}` : "";
}

function Line({ model, row, unit, at, chart, dash }: { model: Model; row: Reading; unit: string; at: number | null; chart: () => Chart | null; dash: boolean }) {
  const { series } = row;
  const colour = stroke(model.palette.ink(model.inkKey(series)), isDark(model.view.theme));
  const gone = row.value === null && at !== null ? gapAt(series, at) : "";
  const spread = row.low !== null && row.high !== null && row.high > row.low ? `\n${quantity(row.low, unit)} to ${quantity(row.high, unit)}` : "";
  const limit = series.limit !== null ? `\nlimit ${quantity(series.limit, unit)}` : "";
  const shown = model.isShown(series);
  return (
    <li>
      <button type="button" class={`line ${shown ? "" : "off"}`} aria-pressed={shown} title={`${plain(series.name)}${identity(series)}\n${exact(row.value, unit)}${spread}${limit}\nclick: alone; Shift-click: hide`}
        onPointerEnter={() => chart()?.accent(series.id)} onClick={(event) => (event.shiftKey ? model.toggleSeries(series.id) : model.isolate(model.inkKey(series)))}>
        <span class={`key ${dash ? "dashed" : ""}`} style={{ borderTopColor: colour }} aria-hidden="true" />
        <bdi class="name">{plain(shorten(brief(series.name), 40))}</bdi>
        <span class={row.value === null ? "value faint" : "value"}>{row.value === null ? gone || "no sample" : quantity(row.value, unit)}</span>
      </button>
    </li>
  );
}
