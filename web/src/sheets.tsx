/** The dialogs over the page: keys, export, metric picker, and the list of containers on a narrow screen. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { renderQuery, seriesParams } from "./api";
import { CopyText } from "./copy-text";
import { curl, duckdb, promql, python, type PanelQuery } from "./copy";
import { csv, drawPicture, fileName, save, type Picture } from "./export";
import { Finder, type Item } from "./finder";
import { plain, quantity, unitWords, words } from "./format";
import { KEYS } from "./keys";
import { ContainerList } from "./list";
import type { Model } from "./model";
import type { Panel } from "./panels";
import { charts } from "./panel";
import { Rightsize } from "./rightsize";
import { newestReadings } from "./series";
import { sentence } from "./sentence";
import { readLook, stroke } from "./theme";
import { renderSpan } from "./time";

export function Sheets({ model }: { model: Model }) {
  const sheet = model.openedSheet;
  switch (sheet) {
    case "help":
      return <Sheet key={sheet} model={model} title="keys"><Help /></Sheet>;
    case "export":
      return <Sheet key={sheet} model={model} title="export and copy as"><Export model={model} /></Sheet>;
    case "picker":
      return <Sheet key={sheet} model={model} title={model.replacing ? `another metric for panel ${model.view.focus + 1}` : "add a panel"}><Picker model={model} /></Sheet>;
    case "list":
      return <Sheet key={sheet} model={model} title="choose containers"><ContainerList model={model} /></Sheet>;
    case "rightsize":
      return <Sheet key={sheet} model={model} title="right-sizing" wide><Rightsize model={model} /></Sheet>;
    default:
      return null;
  }
}

function Sheet({ model, title, wide = false, children }: { model: Model; title: string; wide?: boolean; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const before = document.activeElement;
    dialog.current?.showModal();
    dialog.current?.querySelector<HTMLElement>("input")?.focus();
    return () => {
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  const mine = useRef(model.openedSheet);
  const close = (): void => {
    // The close event comes late: another sheet may have been opened since.
    if (model.openedSheet !== mine.current) return;
    model.replacing = false;
    model.openSheet("");
  };
  return (
    <dialog ref={dialog} class={`sheet ${wide ? "wide" : ""}`} aria-label={title} onClose={close} onClick={(event) => { if (event.target === dialog.current) close(); }}>
      <header><h2>{title}</h2><button type="button" class="plain close" aria-label="close (Esc)" onClick={close}>×</button></header>
      {children}
    </dialog>
  );
}

function Help() {
  return (
    <>
      <table class="keys"><tbody>
        {KEYS.filter((key) => key.shown).map((key) => <tr key={key.shown}><th scope="row"><kbd>{key.shown}</kbd></th><td>{key.does}</td></tr>)}
      </tbody></table>
      <p class="faint">With the mouse: drag zooms, the wheel zooms at the cursor, Shift-drag pans, a double click resets. A click on a name in a legend shows it alone, Shift-click hides it.</p>
    </>
  );
}

function Picker({ model }: { model: Model }) {
  const focus = model.view.focus;
  const replacing = model.replacing;
  const items: Item[] = model.panels.metrics.map((metric) => ({
    key: `${metric.scope} ${metric.name}`,
    group: metric.scope,
    name: metric.name,
    more: `${metric.help} (${unitWords(metric.unit)})`,
    pick: () => (replacing ? model.panels.replace(focus, metric) : model.panels.add(metric)),
  }));
  const done = (): void => {
    model.replacing = false;
    model.openSheet("");
  };
  return <Finder id="picker" label="metric" placeholder="type a metric" items={items} open done={done} />;
}

// ---- export ----------------------------------------------------------------------

function Export({ model }: { model: Model }) {
  const panel = model.panels.focused;
  if (!panel?.slot.value) return <p>There is nothing drawn to export yet.</p>;
  const query = queryOf(model, panel);
  const prom = promql(query);
  const span = model.time.span;
  const params = seriesParams({ ...query, containers: query.containers.map((one) => one.id) });
  const link = (format: string): string => `/api/export?${renderQuery({ ...params, format, node: model.view.node })}`;
  return (
    <>
      <p>Panel {model.view.focus + 1}, {words(panel.choice.metric)}, {renderSpan(span, model.view.utc)}.</p>
      <h3>as a file</h3>
      <p class="buttons">
        <button type="button" onClick={() => saveCsv(model, panel)}>CSV of what is drawn</button>
        <button type="button" onClick={() => void savePicture(model)}>PNG of all panels</button>
        {!model.source.offline && <a class="button" href={link("csv")} download>CSV, every sample</a>}
        {!model.source.offline && <a class="button" href={link("parquet")} download>Parquet</a>}
        {!model.source.offline && <a class="button" href={link("html")} download>HTML, opens offline</a>}
      </p>
      <h3>copy as</h3>
      <CopyText name="link" text={window.location.href} />
      {prom ? <CopyText name="PromQL" text={prom} /> : <p class="faint">PromQL: {panel.choice.metric} is not on /metrics under a name of its own.</p>}
      <CopyText name="curl" text={curl(query)} />
      <CopyText name="Python" text={python(query)} />
      <CopyText name="DuckDB" text={duckdb(query)} />
    </>
  );
}

function queryOf(model: Model, panel: Panel): PanelQuery {
  const series = panel.slot.value?.series.filter(model.selection.shownIn(panel.slot.value)) ?? [];
  const containers = panel.choice.scope ? [] : series.map((one) => ({
    id: one.id,
    lives: one.lives.length ? one.lives : [one.id],
    pod: one.labels["pod_name"] ?? "",
    container: one.labels["container_name"] ?? "",
    namespace: one.labels["namespace"] ?? "",
  }));
  return { metric: panel.choice.metric, scope: panel.choice.scope, containers, span: model.time.span, origin: window.location.origin };
}

function saveCsv(model: Model, panel: Panel): void {
  if (!panel.slot.value) return;
  const text = csv(panel.slot.value, model.selection.shownIn(panel.slot.value), model.time.span);
  save(fileName(model.data.instance.value?.node ?? "node", panel.choice.metric, model.time.span, "csv"), new Blob([text], { type: "text/csv" }));
}

async function savePicture(model: Model): Promise<void> {
  const look = readLook();
  const pictures: Picture[] = [];
  for (const panel of model.panels.list) {
    const canvas = charts.get(panel.key)?.canvas();
    const answer = panel.slot.value;
    if (!canvas || !answer) continue;
    pictures.push({
      title: `${words(panel.choice.metric)} (${unitWords(answer.unit)})`,
      sentence: plain(sentence(answer, panel.findings, model.tellingOf(answer))),
      canvas,
      legend: newestReadings(answer, model.time.span).filter((row) => model.selection.shownIn(answer)(row.series)).map((row) => ({
        name: plain(row.series.name),
        value: quantity(row.value, answer.unit),
        colour: stroke(model.panels.palette.inkOf(row.series), look.dark),
      })),
    });
  }
  if (pictures.length === 0) return;
  const node = model.data.instance.value?.node ?? "node";
  const canvas = drawPicture(pictures, `${node}, ${renderSpan(model.time.span, model.view.utc)}`, look.text, look.ground);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (blob) save(fileName(node, "panels", model.time.span, "png"), blob);
}
