/** The list of containers, the largest first, with its filters; a click chooses which are drawn. */

import { useEffect } from "preact/hooks";

import { colourKey } from "./colour";
import { isEvent, limitAt, type FindingRow } from "./findings";
import { brief, exact, plain, quantity, shorten, spoken, words } from "./format";
import type { Model } from "./model";
import { Spark } from "./spark";
import { Trouble } from "./states";
import { isDark, stroke } from "./theme";
import { duration, minute } from "./time";
import type { ContainerJson, ContainersJson, CountedJson } from "./types";
import { groupRows, type WorkloadRow } from "./workloads";

const ROWS = 150;
/** From this share on a range was recorded whole, but for rounding; the server's words have the same. */
const WHOLE = 0.95;
/** From this share of its limit on a row says so. */
const NEAR_LIMIT = 0.9;

export function ContainerList({ model }: { model: Model }) {
  const { view } = model;
  useChosenRow(view.incident, model.data.containers.value !== null);
  const { value, trouble } = model.data.containers;
  const rows = value?.containers ?? [];
  return (
    <>
      <div class="list-head">
        <h2>{model.data.summary.value?.tiles.find((tile) => tile.id === "containers")?.title ?? "containers"}</h2>
        <label>by <select aria-label="sort containers by" value={model.panels.sort} onChange={(event) => model.address.change({ sort: event.currentTarget.value })}>
          {sorts(model).map((name) => <option key={name} value={name}>{words(name)}</option>)}
        </select></label>
        <label><input type="checkbox" checked={view.grouped} onChange={(event) => model.address.change({ grouped: event.currentTarget.checked })} /> by workload</label>
        {view.containers.length > 0 && <button type="button" class="plain" onClick={() => model.selection.clear()}>the busiest again</button>}
      </div>
      <div class="filters">
        <input id="filter" type="search" aria-label="filter containers" placeholder="filter by name (c)" value={view.search} maxLength={200} autocomplete="off" spellcheck={false}
          onInput={(event) => model.address.change({ search: event.currentTarget.value }, false)} onKeyDown={(event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); step(event.currentTarget, 1); } }} />
        <Filter label="namespace" value={view.namespace} all={model.data.filters.value?.namespaces ?? []} choose={(namespace) => model.address.change({ namespace })} />
        <Filter label="QoS" value={view.qos} all={model.data.filters.value?.qos_classes ?? []} choose={(qos) => model.address.change({ qos })} />
        <LabelFilter model={model} />
      </div>
      {value?.sentence && <p class="faint said-list">{spoken(value.sentence)}</p>}
      {value && <p class="faint what-list">{words(value.metric)}: mean of {meanOf(model, value)}</p>}
      {trouble && <Trouble small trouble={trouble} retry={() => model.data.requests.retry(model.data.containers)} />}
      {value && rows.length === 0 && <NoRows model={model} />}
      <ul class="containers">
        {view.grouped
          ? groupRows(rows, value?.unit ?? "").slice(0, ROWS).map((group) => <GroupRow key={group.key} model={model} group={group} unit={value?.unit ?? ""} />)
          : rows.slice(0, ROWS).map((row) => <Row key={row.id} model={model} row={row} unit={value?.unit ?? ""} />)}
      </ul>
      {value && value.total > Math.min(rows.length, ROWS) && <p class="faint more">{Math.min(rows.length, ROWS)} of {value.total} containers shown; filter to see the others</p>}
    </>
  );
}

/** Whom a card chose is seen in the list, too, wherever it stands; a click on a row moves nothing. */
function useChosenRow(incident: string, isListed: boolean): void {
  useEffect(() => {
    if (!incident || !isListed) return;
    const row = document.querySelector<HTMLElement>(".side .row.chosen");
    const list = row?.closest<HTMLElement>(".containers");
    if (!row || !list) return;
    const [inner, outer] = [row.getBoundingClientRect(), list.getBoundingClientRect()];
    if (inner.top < outer.top || inner.bottom > outer.bottom) list.scrollTop += inner.top - outer.top - outer.height / 2;
  }, [incident, isListed]);
}

/** What a mean is over: time in which nothing was recorded counts for nobody. */
function meanOf(model: Model, value: ContainersJson): string {
  const ranked = value.ranked_to - value.ranked_from;
  if (value.recorded_seconds !== null && value.recorded_seconds < WHOLE * ranked) return `the ${duration(Math.round(value.recorded_seconds))} that were recorded`;
  return `the range${value.ranked_from > model.time.span.from + 60 ? ` from ${minute(value.ranked_from, model.view.utc)} on` : ""}`;
}

function sorts(model: Model): string[] {
  return model.panels.sorts.includes(model.panels.sort) ? model.panels.sorts : [model.panels.sort, ...model.panels.sorts];
}

function Filter({ label, value, all, choose }: { label: string; value: string; all: CountedJson[]; choose: (value: string) => void }) {
  if (all.length < 2 && !value) return null;
  return (
    <select aria-label={label} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">{label}</option>
      {value && !all.some((one) => one.name === value) && <option value={value}>{plain(shorten(value, 40))}</option>}
      {all.map((one) => <option key={one.name} value={one.name}>{plain(shorten(one.name, 40))}{one.count ? ` (${one.count})` : ""}</option>)}
    </select>
  );
}

function LabelFilter({ model }: { model: Model }) {
  const labels = Object.entries(model.data.filters.value?.labels ?? {}).flatMap(([key, values]) => values.slice(0, 50).map((value) => ({ name: `${key}:${value}`, count: 0 })));
  if (labels.length === 0 && !model.view.labels) return null;
  return <Filter label="label" value={model.view.labels} all={labels} choose={(value) => model.address.change({ labels: value })} />;
}

function NoRows({ model }: { model: Model }) {
  const narrowed = model.view.search || model.view.namespace || model.view.qos || model.view.labels;
  return (
    <div class="state small">
      {narrowed
        ? <><p>No container matches{model.view.search && <> “{shorten(model.view.search, 40)}”</>} in this range.</p>
          <button type="button" onClick={() => model.address.change({ search: "", namespace: "", qos: "", labels: "" })}>clear the filters</button></>
        : <p>No container was seen in this range. Choose a longer one, or press 0.</p>}
    </div>
  );
}

/** Arrow keys move between the filter and the rows. */
function step(from: HTMLElement, by: number): void {
  const all = [...document.querySelectorAll<HTMLElement>("#filter, .containers .row")].filter((one) => one.offsetParent !== null);
  all[all.indexOf(from) + by]?.focus();
}

function Row({ model, row, unit }: { model: Model; row: ContainerJson; unit: string }) {
  const chosen = model.selection.isChosen(row);
  const drawn = model.panels.list.some((panel) => panel.slot.value?.series.some((series) => colourKey(series) === colourKey(row)));
  const colour = drawn ? stroke(model.panels.palette.inkOf(row), isDark(model.view.theme)) : undefined;
  const note = noteOf(model, row);
  return (
    <li>
      <button type="button" class={`row ${chosen ? "chosen" : ""} ${row.state}`} aria-pressed={chosen} title={`${plain(row.name)}${model.many ? ` on ${plain(row.node)}` : ""}\n${note ? `${note.text}\n` : ""}${row.short_id}\n${exact(row.over_span, unit)} mean of the range, ${exact(row.value, unit)} while there\n${row.lives.length > 1 ? `${row.lives.length} lives in this range` : "one life in this range"}`}
        onClick={() => model.toggleContainer(row)} onKeyDown={(event) => { const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]; if (by) { event.preventDefault(); event.stopPropagation(); step(event.currentTarget, by); } }}>
        <span class="swatch" style={{ background: colour ?? "transparent" }} aria-hidden="true" />
        <bdi class="name">{plain(shorten(brief(row.name), 56))}{model.many && <span class="faint"> {plain(shorten(row.node, 24))}</span>}</bdi>
        <span class={`value ${row.state === "running" ? "" : "faint"}`}>{quantity(row.over_span, unit)}</span>
        <span class={`under ${note ? "noted" : ""}`}>{note && <em class={note.harm ? "harm" : ""}>{note.text} </em>}<bdi>{plain(shorten(row.namespace ?? (row.id.startsWith("service:") ? "service" : "no namespace"), 24))}</bdi> {row.qos_class ?? ""}</span>
        <Spark values={row.spark} {...(colour ? { colour } : {})} />
      </button>
      {row.scope === "container" && <button type="button" class="plain to-page" title="its page: all lives, limits, how it ended (o)" aria-label={`page of ${plain(shorten(brief(row.name), 56))}`} onClick={() => { if (model.sheet === "list") model.openSheet(""); model.openContainer(row); }}>page</button>}
    </li>
  );
}

/** All pods of a workload in one row; a click draws them together. */
function GroupRow({ model, group, unit }: { model: Model; group: WorkloadRow; unit: string }) {
  const chosen = group.rows.some((row) => model.selection.isChosen(row));
  const pods = `${group.pods} pod${group.pods === 1 ? "" : "s"}`;
  return (
    <li>
      <button type="button" class={`row ${chosen ? "chosen" : ""}`} aria-pressed={chosen} title={`${plain(group.name)}\n${plain(group.kind)}, ${pods}\n${exact(group.overSpan, unit)} over the range`}
        onClick={() => model.selection.toggleAll(group.rows)} onKeyDown={(event) => { const by = { ArrowDown: 1, ArrowUp: -1 }[event.key]; if (by) { event.preventDefault(); event.stopPropagation(); step(event.currentTarget, by); } }}>
        <span class="swatch" aria-hidden="true" />
        <bdi class="name">{plain(shorten(group.name, 56))}</bdi>
        <span class="value">{quantity(group.overSpan, unit)}</span>
        <span class="under"><bdi>{plain(shorten(group.namespace || "no namespace", 24))}</bdi> {plain(shorten(group.kind, 40))}, {pods}</span>
        <Spark values={group.spark} />
      </button>
    </li>
  );
}

interface Note {
  text: string;
  harm: boolean;
}

/** What happened to it in the range, and whether it is still there. */
function noteOf(model: Model, row: ContainerJson): Note | null {
  const { utc } = model.view;
  const parts: string[] = [];
  if (row.kills) parts.push(row.state === "oom_killed" ? "OOM killed" : "OOM killed, runs again");
  if (row.kills > 1) parts.push(`${row.kills} kills`);
  // A kill after which it runs again is that restart.
  if (row.restarts && (row.restarts > row.kills || row.state === "oom_killed")) parts.push(`${row.restarts} restart${row.restarts === 1 ? "" : "s"}`);
  if (row.state === "running" && row.limit && row.last !== null && row.last >= NEAR_LIMIT * row.limit) parts.push(`${quantity(row.last / row.limit, "ratio")} of its limit`);
  if (row.state === "exited") parts.push(`ended ${minute(row.last_seen, utc)}`);
  const found = model.panels.findings.find((one: FindingRow) => one.name === row.name && one.node === row.node && isEvent(one) && one.finding.kind === "trend" && limitAt(one.finding) !== null);
  const reaches = found ? limitAt(found.finding) : null;
  if (reaches !== null && row.state === "running" && !row.kills) parts.push(`limit at ${minute(reaches, utc)}`);
  if (parts.length === 0) return null;
  return { text: parts.join(", "), harm: row.kills > 0 || row.restarts > 0 || reaches !== null };
}
