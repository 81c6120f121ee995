/** A panel: title, one sentence, chart, legend; and what it shows while it has no data. */

import { useEffect, useRef } from "preact/hooks";
import { Chart } from "./chart";
import { plain, shorten, spoken, unitWords, words } from "./format";
import { lazy } from "./lazy";
import { Legend } from "./legend";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { now } from "./timers";
import { hasValues } from "./series";
import { sentence } from "./sentence";
import { Trouble } from "./states";
import type { TimeseriesJson } from "./types";

const Threshold = lazy(async () => (await import("./threshold")).Threshold);

/** The charts by panel, for the export as a picture. */
export const charts = new Map<string, Chart>();

export function PanelView({ model, panel, index }: { model: Model; panel: Panel; index: number }) {
  const host = useRef<HTMLDivElement>(null);
  const chart = useRef<Chart | null>(null);
  useEffect(() => {
    if (!host.current) return;
    const made = new Chart(host.current, model, panel);
    chart.current = made;
    charts.set(panel.key, made);
    return () => {
      made.destroy();
      charts.delete(panel.key);
      chart.current = null;
    };
  }, [model, panel]);
  useEffect(() => chart.current?.draw(panel), [panel, panel.version, model.view.utc, model.view.theme, model.view.hidden, model.view.only, model.view.compare, model.view.finding, model.view.why, model.view.drawer, model.view.thresholds]);

  const { slot, choice } = panel;
  const metric = model.panels.metricOf(choice);
  const said = slot.value ? spoken(sentence(slot.value, panel.findings, model.tellingOf(slot.value, panel.joined))) : "";
  const focused = model.view.focus === index;
  return (
    <section class={`panel ${focused ? "focused" : ""}`} aria-label={`panel ${index + 1}: ${words(choice.metric)}`} onPointerDown={() => { if (!focused) model.panels.focus(index); }}>
      <header>
        <span class="number" aria-hidden="true">{index + 1}</span>
        <h2 title={metric?.help ?? ""}>{plain(choice.title || titleOf(choice.metric, choice.scope))} <span class="faint unit">({unitWords(slot.value?.unit ?? metric?.unit ?? "...")}{JOINED_WORDS[panel.joined]})</span></h2>
        <p class="sentence" title={said} aria-live={model.time.isLive ? "off" : "polite"}>{said}</p>
        <span class="tools">
          <button type="button" class="plain" title="draw a threshold, and copy it as an alert" aria-label={`threshold in panel ${index + 1}`} onClick={() => void drawThreshold(model, panel)}>threshold</button>
          <button type="button" class="plain" title="another metric here" aria-label={`change the metric of panel ${index + 1}`} onClick={() => { model.panels.focus(index); model.replacing = true; model.openSheet("picker"); }}>change</button>
          <button type="button" class="plain" title="remove this panel (x)" aria-label={`remove panel ${index + 1}`} onClick={() => model.panels.remove(index)}>×</button>
        </span>
      </header>
      <div class="plot">
        <div class="chart" ref={host} role="img" aria-label={said || "loading"} />
        {model.view.thresholds[panel.key] !== undefined && <Threshold model={model} panel={panel} chart={() => chart.current} />}
        <PanelState model={model} panel={panel} />
      </div>
      <Legend model={model} panel={panel} chart={() => chart.current} />
    </section>
  );
}

/** What the figure of a group is. */
const JOINED_WORDS = { "": "", sum: ", added up", max: ", largest of each group" };

async function drawThreshold(model: Model, panel: Panel): Promise<void> {
  const { firstThreshold } = await import("./threshold");
  model.setThreshold(panel, panel.key in model.view.thresholds ? null : firstThreshold(panel));
}

function titleOf(metric: string, scope: string): string {
  return scope && scope !== "gpu" ? `${scope} ${words(metric)}` : words(metric);
}

function PanelState({ model, panel }: { model: Model; panel: Panel }) {
  const { slot } = panel;
  if (slot.trouble) return <Trouble small={slot.value !== null} trouble={slot.trouble} retry={() => model.data.requests.retry(slot)} way={wayOn(model, panel)} />;
  const waits = slot.loadingSince ? now() - slot.loadingSince : 0;
  if (!slot.value) return <p class="state loading" role="status">{waits >= 2 ? `still waiting for ${panel.choice.metric}, ${Math.floor(waits)} s ...` : `loading ${panel.choice.metric} ...`}</p>;
  if (slot.value.refused.length && hasValues(slot.value)) return <p class="corner damaged" title={slot.value.refused.join("\n")}>{slot.value.refused.length === 1 ? "a file" : `${slot.value.refused.length} files`} of this range cannot be read: {shorten(slot.value.refused[0] ?? "", 120)}</p>;
  if (waits >= 2) return <p class="corner" role="status">finer data are on their way, {Math.floor(waits)} s ...</p>;
  if (!hasValues(slot.value)) return <Nothing model={model} answer={slot.value} ofContainers={!panel.choice.scope} />;
  return null;
}

/** A link to a container that is gone leads on to those that are there, one to a metric that is none to what was measured. */
function wayOn(model: Model, { key, slot }: Panel): { words: string; go: () => void } | null {
  if (/^no metric|was not collected/.test(slot.trouble?.failure.detail ?? "")) {
    const others = model.panels.list.filter((panel) => panel.key !== key).map((panel) => panel.choice);
    return { words: others.length ? "remove this panel" : "show the usual panels", go: () => model.address.change({ panels: others.length ? others : null, focus: 0 }) };
  }
  if (model.view.containers.length === 0 && !model.view.only) return null;
  return { words: "show the busiest", go: () => model.selection.clear() };
}

/** The filter admits no container: the range is not to blame. */
function NoneAdmitted({ model }: { model: Model }) {
  return (
    <div class="state small">
      <p>No container of this filter is in this range.</p>
      <button type="button" onClick={() => model.address.change({ search: "", namespace: "", qos: "", labels: "" })}>clear the filters</button>
    </div>
  );
}

/** Why the chart is empty. */
function Nothing({ model, answer, ofContainers }: { model: Model; answer: TimeseriesJson; ofContainers: boolean }) {
  if (model.data.isFiltered && !model.view.containers.length && !answer.series.length && !answer.refused.length && ofContainers) return <NoneAdmitted model={model} />;
  const reason = answer.refused[0] ?? answer.missing[0]?.reason ?? answer.series.flatMap((series) => series.gaps)[0]?.reason;
  return (
    <div class="state small">
      <p>No sample of {shorten(words(answer.metric), 60)} in this range{reason && !reason.startsWith("no sample of ") ? `: ${reason}` : ""}.</p>
      <button type="button" onClick={() => model.time.goTo({ all: true })}>show all there is</button>
      {model.view.containers.length > 0 && <button type="button" onClick={() => model.selection.clear()}>show the busiest</button>}
    </div>
  );
}
