/** What is drawn as a file, a picture or a query for another tool. */

import { renderQuery, seriesParams } from "./api";
import { CopyText } from "./copy-text";
import { curl, duckdb, promql, python } from "./copy";
import { csv, drawPicture, fileName, save, type Picture } from "./export";
import { plain, quantity, unitWords, words } from "./format";
import type { Model } from "./model";
import { charts } from "./panel";
import { queryOf } from "./panel-query";
import type { Panel } from "./panels";
import { newestReadings } from "./series";
import { sentence } from "./sentence";
import { readLook, stroke } from "./theme";
import { renderSpan } from "./time";

export function Export({ model }: { model: Model }) {
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
      sentence: plain(sentence(answer, panel.findings, model.tellingOf(answer, panel.joined))),
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
