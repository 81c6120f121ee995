/** Who is there, the largest first; a click chooses who is drawn. */

import { useMemo } from "preact/hooks";
import { isEvent, limitAt, type Found } from "./findings";
import { brief, exact, plain, quantity, shorten, words } from "./format";
import { search } from "./fuzzy";
import type { Model } from "./model";
import { Spark } from "./spark";
import { Trouble } from "./states";
import { isDark, stroke } from "./theme";
import { clock } from "./time";
import type { Container } from "./types";

const ROWS = 150;

export function ContainerList({ model }: { model: Model }) {
  const { view } = model;
  const { value, trouble } = model.containers;
  const all = useMemo(() => model.rows, [value]);
  const rows = useMemo(() => search(view.search, all, (row) => `${row.name} ${row.namespace ?? ""} ${row.short_id} ${Object.values(row.labels).join(" ")}`), [view.search, all]);
  return (
    <>
      <div class="list-head">
        <h2>{model.summary.value?.tiles.find((tile) => tile.id === "containers")?.title ?? "containers"}</h2>
        <label>by <select aria-label="sort containers by" value={model.sort} onChange={(event) => model.change({ sort: event.currentTarget.value })}>
          {sorts(model).map((name) => <option key={name} value={name}>{words(name)}</option>)}
        </select></label>
        {view.containers.length > 0 && <button type="button" class="plain" onClick={() => model.chooseContainers([])}>the busiest again</button>}
      </div>
      <div class="filters">
        <input id="filter" type="search" aria-label="filter containers" placeholder="filter, fuzzy (c)" value={view.search} maxLength={200} autocomplete="off" spellcheck={false}
          onInput={(event) => model.change({ search: event.currentTarget.value }, false)} onKeyDown={(event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); step(event.currentTarget, 1); } }} />
        <Filter label="namespace" value={view.namespace} all={model.filters.value?.namespaces ?? []} choose={(namespace) => model.change({ namespace })} />
        <Filter label="QoS" value={view.qos} all={model.filters.value?.qos_classes ?? []} choose={(qos) => model.change({ qos })} />
        <LabelFilter model={model} />
      </div>
      {trouble && <Trouble small trouble={trouble} retry={() => model.retry(model.containers)} />}
      {value && rows.length === 0 && <NoRows model={model} total={all.length} />}
      <ul class="containers">
        {rows.slice(0, ROWS).map((row) => <Row key={row.id} model={model} row={row} unit={value?.unit ?? ""} />)}
      </ul>
      {value && (value.total > value.containers.length || rows.length > ROWS) && <p class="faint more">{Math.min(rows.length, ROWS)} of {value.total} shown; filter to see the others</p>}
    </>
  );
}

function sorts(model: Model): string[] {
  return model.sorts.includes(model.sort) ? model.sorts : [model.sort, ...model.sorts];
}

function Filter({ label, value, all, choose }: { label: string; value: string; all: (string | { name: string; count: number })[]; choose: (value: string) => void }) {
  const named = all.map((one) => (typeof one === "string" ? { name: one, count: 0 } : one));
  if (named.length < 2 && !value) return null;
  return (
    <select aria-label={label} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">{label}</option>
      {value && !named.some((one) => one.name === value) && <option value={value}>{plain(shorten(value, 40))}</option>}
      {named.map((one) => <option key={one.name} value={one.name}>{plain(shorten(one.name, 40))}{one.count ? ` (${one.count})` : ""}</option>)}
    </select>
  );
}

function LabelFilter({ model }: { model: Model }) {
  const labels = Object.entries(model.filters.value?.labels ?? {}).flatMap(([key, values]) => values.slice(0, 50).map((value) => `${key}:${value}`));
  if (labels.length === 0 && !model.view.labels) return null;
  return <Filter label="label" value={model.view.labels} all={labels} choose={(value) => model.change({ labels: value })} />;
}

function NoRows({ model, total }: { model: Model; total: number }) {
  const narrowed = model.view.search || model.view.namespace || model.view.qos || model.view.labels;
  return (
    <div class="state small">
      {narrowed
        ? <><p>No container matches{model.view.search && <> “{shorten(model.view.search, 40)}”</>}{total > 0 && `; ${total} do without the text`}.</p>
          <button type="button" onClick={() => model.change({ search: "", namespace: "", qos: "", labels: "" })}>clear the filters</button></>
        : <p>No container was seen in this range. Choose a longer one, or press 0.</p>}
    </div>
  );
}

/** Arrow keys walk the rows; the filter is above the first. */
function step(from: HTMLElement, by: number): void {
  const all = [...document.querySelectorAll<HTMLElement>("#filter, .containers button")].filter((one) => one.offsetParent !== null);
  all[all.indexOf(from) + by]?.focus();
}

function Row({ model, row, unit }: { model: Model; row: Container; unit: string }) {
  const chosen = model.view.containers.includes(row.short_id);
  const drawn = model.panels.some((panel) => panel.slot.value?.series.some((series) => model.inkKey(series) === model.inkKey(row)));
  const colour = drawn ? stroke(model.palette.ink(model.inkKey(row)), isDark(model.view.theme)) : undefined;
  const note = noteOf(model, row);
  return (
    <li>
      <button type="button" class={`row ${chosen ? "chosen" : ""} ${row.state}`} aria-pressed={chosen} title={`${plain(row.name)}\n${row.short_id}\n${exact(row.value, unit)}`}
        onClick={() => model.toggleContainer(row)} onKeyDown={(event) => { const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]; if (by) { event.preventDefault(); event.stopPropagation(); step(event.currentTarget, by); } }}>
        <span class="swatch" style={{ background: colour ?? "transparent" }} aria-hidden="true" />
        <bdi class="name">{plain(shorten(brief(row.name), 56))}</bdi>
        <span class="value">{quantity(row.value, unit)}</span>
        <span class="under">{note && <em class={note.harm ? "harm" : ""}>{note.text} </em>}<bdi>{plain(shorten(row.namespace ?? (row.id.startsWith("service:") ? "service" : "no namespace"), 24))}</bdi> {row.qos_class ?? ""}</span>
        <Spark values={row.spark} {...(colour ? { colour } : {})} />
      </button>
    </li>
  );
}

interface Note {
  text: string;
  harm: boolean;
}

function noteOf(model: Model, row: Container): Note | null {
  const killed = model.containers.value?.containers.some((one) => one.name === row.name && one.namespace === row.namespace && one.state === "oom_killed");
  if (killed) return { text: row.state === "oom_killed" ? "OOM killed" : "OOM killed, runs again", harm: true };
  const found = model.found.find((one: Found) => one.name === row.name && isEvent(one) && one.finding.kind === "trend" && limitAt(one.finding) !== null);
  const reaches = found ? limitAt(found.finding) : null;
  if (reaches !== null && row.state === "running") return { text: `limit at ${clock(reaches, model.view.utc).slice(0, 5)}`, harm: true };
  if (row.state === "exited") return { text: "exited", harm: false };
  if (row.restarts) return { text: `${row.restarts} restart${row.restarts === 1 ? "" : "s"}`, harm: true };
  return null;
}
