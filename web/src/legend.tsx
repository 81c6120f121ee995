/** The legend of a panel, the largest value at the cursor first. A click shows one series alone, Shift-click hides it. */

import type { Chart } from "./chart";
import { colourKey } from "./colour";
import { difference, valueBefore } from "./earlier";
import { brief, exact, plain, quantity, shorten } from "./format";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { gapAt, nearest, newestAt, newestReadings, oneEach, readings, type Reading } from "./series";
import { useSignal } from "./signal";
import { isDark, stroke } from "./theme";
import { clock, duration, minute } from "./time";
import type { TimeseriesJson } from "./types";

export function Legend({ model, panel, chart }: { model: Model; panel: Panel; chart: () => Chart | null }) {
  useSignal(model.time.cursorMoved);
  const at = model.time.cursor;
  const answer = panel.slot.value;
  if (!answer) return <div class="legend" />;
  const place = at === null ? -1 : nearest(answer.time, at);
  const rows = oneEach(place < 0 ? newestReadings(answer, model.time.span) : readings(answer, place), (series) => `${series.node} ${colourKey(series)}`);
  return (
    <ul class="legend" aria-label="legend" onPointerLeave={() => chart()?.accent(null)}>
      <li class="caption faint">{caption(model, answer, place < 0 ? newestAt(answer, rows) : (answer.time[place] ?? null))}</li>
      {rows.map((row) => <Line key={`${row.series.node} ${colourKey(row.series)}`} model={model} panel={panel} row={row} unit={answer.unit} at={at} chart={chart} dash={model.panels.palette.inkOf(row.series).dash.length > 0} />)}
      {answer.missing.map((one) => <li key={one.id} class="faint missing"><bdi>{plain(shorten(one.id, 14))}</bdi>: {one.reason}</li>)}
    </ul>
  );
}

/** What the values are: of which moment, and the mean of how long. */
function caption(model: Model, answer: TimeseriesJson, at: number | null): string {
  if (at === null) return "no value here";
  const { bucket_seconds: bucket } = answer;
  return `at ${clock(at, model.view.utc)}${bucket > 1.5 ? `, mean of ${duration(bucket)}` : ""}`;
}

/** The id of a series whose name may occur twice: a GPU's uuid. */
function identity(series: Reading["series"]): string {
  const { uuid } = series.labels;
  return uuid ? `\n${plain(uuid)}` : "";
}

function Line({ model, panel, row, unit, at, chart, dash }: { model: Model; panel: Panel; row: Reading; unit: string; at: number | null; chart: () => Chart | null; dash: boolean }) {
  const { series } = row;
  const colour = stroke(model.panels.palette.inkOf(series), isDark(model.view.theme));
  const gone = row.value === null && at !== null ? gapAt(series, at) : "";
  const spread = row.low !== null && row.high !== null && row.high > row.low ? `\n${quantity(row.low, unit)} to ${quantity(row.high, unit)}` : "";
  const limit = series.limit !== null ? `\nlimit ${quantity(series.limit, unit)}` : "";
  const shown = model.selection.shownIn(panel.slot.value)(series);
  const earlier = model.panels.earlierOf(panel);
  const when = panel.slot.value?.time[row.place];
  const change = earlier && when !== undefined ? difference(row.value, valueBefore(earlier, series, when)) : "";
  return (
    <li>
      <button type="button" class={`line ${shown ? "" : "off"}`} aria-pressed={shown} title={`${plain(series.name)}${identity(series)}\n${exact(row.value, unit)}${spread}${limit}\nclick: alone; Shift-click: hide`}
        onPointerEnter={() => chart()?.accent(series.id)} onClick={(event) => (event.shiftKey ? model.selection.toggleSeries(series) : model.selection.isolate(series))}>
        <span class={`key ${dash ? "dashed" : ""}`} style={{ borderTopColor: colour }} aria-hidden="true" />
        <bdi class="name">{plain(shorten(brief(series.name), 40))}{model.many && <span class="faint"> {plain(shorten(series.node, 16))}</span>}</bdi>
        <span class={row.value === null ? "value faint" : "value"}>{row.value !== null && change && <span class="faint">{change} </span>}{row.value === null ? gone || (row.endedAt ? `ended ${minute(row.endedAt, model.view.utc)}` : "no sample") : quantity(row.value, unit)}</span>
      </button>
    </li>
  );
}
