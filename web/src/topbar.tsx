/** The top bar: node, range, live state, search, findings, export and display options. */

import { WAY_BACK } from "./cluster/view";
import { EARLIER } from "./earlier";
import { Finder, type Item } from "./finder";
import { plain, quantity } from "./format";
import type { Model } from "./model";
import { nextTheme } from "./theme";
import { briefSpan, CHOICES, duration, isSpan, renderLength, renderSpan, zone, type Range } from "./time";
import type { Theme } from "./view";

export function TopBar({ model }: { model: Model }) {
  const { view } = model;
  const { instance } = model.data;
  const count = model.panels.findings.length;
  const studying = model.panels.list.some((panel) => panel.studies.loadingSince > 0);
  return (
    <header class="top">
      <h1>nodescope</h1>
      {!model.source.offline && (instance.value?.cluster || wayBack()) && <a class="button" href={`/cluster${wayBack()}`}>cluster</a>}
      <NodeName model={model} />
      {instance.value?.to != null && <RangeChoice model={model} />}
      {instance.value?.to != null && <LiveBadge model={model} />}
      <Problems model={model} />
      <button type="button" class="list-opener" onClick={() => model.openSheet("list")}>containers</button>
      {instance.value && <Finder id="search" label="search containers and metrics" placeholder="/ search containers, metrics" items={searchItems(model)} />}
      <span class="spring" />
      <button type="button" class="menu-opener" aria-expanded={model.menu} onClick={() => model.toggleMenu()}>menu</button>
      <span class={`top-tools ${model.menu ? "open" : ""}`}>
      <button type="button" class={`findings-opener ${count ? "has" : ""}`} aria-expanded={view.drawer !== ""} onClick={() => model.address.change({ drawer: view.drawer ? "" : "findings" }, false)}>
        {studying && count === 0 ? "studying ..." : `${count} finding${count === 1 ? "" : "s"}`}
      </button>
      {!model.source.offline && <button type="button" title="requests and limits that fit (r)" onClick={() => model.openSheet("rightsize")}>right-sizing</button>}
      <button type="button" title="saved views (v)" onClick={() => model.openSheet("views")}>views</button>
      <button type="button" title="export, copy as (e)" onClick={() => model.openSheet("export")}>export</button>
      <button type="button" title="times in UTC, or in the time zone of this computer (u)" aria-pressed={view.utc} onClick={() => model.address.change({ utc: !view.utc }, false)}>times: {zone(view.utc, model.time.newest || 0)}</button>
      <button type="button" title="light or dark, or as this computer has it (t)" onClick={() => model.address.change({ theme: nextTheme(view.theme) }, false)}>{THEME_WORDS[view.theme]}</button>
      <button type="button" title="keys (?)" aria-label="? keys" onClick={() => model.openSheet("help")}>?</button>
      </span>
    </header>
  );
}

/** The page of many nodes as it was left, where somebody came from there. */
function wayBack(): string {
  try {
    return sessionStorage.getItem(WAY_BACK) ?? "";
  } catch {
    return "";
  }
}

const THEME_WORDS: Record<Theme, string> = { system: "colours: auto", light: "colours: light", dark: "colours: dark" };

/** Files that cannot be read: said although there are others. */
function Problems({ model }: { model: Model }) {
  const problems = model.data.instance.value?.problems ?? [];
  const [first] = problems;
  if (!first || model.data.instance.value?.to == null) return null;
  const all = problems.map((one) => `${one.file}: ${one.reason}`).join("\n");
  return <button type="button" class="problems" title={all} onClick={() => model.say(`${problems.length === 1 ? "One file" : `${problems.length} files`} cannot be read. ${first.file}: ${first.reason}`, true)}>{problems.length === 1 ? "1 file damaged" : `${problems.length} files damaged`}</button>;
}

function NodeName({ model }: { model: Model }) {
  const instance = model.data.instance.value;
  if (!instance) return null;
  if (instance.nodes.length < 2) return <span class="node" dir="auto">{plain(instance.node)}</span>;
  return (
    <select aria-label="node" value={model.view.node} onChange={(event) => model.address.change({ node: event.currentTarget.value, containers: [], hidden: [], only: "", incident: "" })}>
      <option value="">all {instance.nodes.length} nodes</option>
      {instance.nodes.map((node) => <option key={node} value={node}>{plain(node)}</option>)}
    </select>
  );
}

function word(range: Range): string {
  return "all" in range ? "all" : isSpan(range) ? "fixed" : renderLength(range.last);
}

function RangeChoice({ model }: { model: Model }) {
  const { range, span } = model.time;
  const current = word(range);
  const known = CHOICES.some((choice) => word(choice.range) === current);
  const choose = (value: string): void => {
    const choice = CHOICES.find((one) => word(one.range) === value);
    if (choice) model.time.goTo(choice.range);
  };
  return (
    <span class="range">
      <select aria-label="time range" value={current} onChange={(event) => choose(event.currentTarget.value)}>
        {!known && <option value={current}>{isSpan(range) ? duration(span.to - span.from) : `last ${current}`}</option>}
        {CHOICES.map((choice) => <option key={choice.label} value={word(choice.range)}>{choice.label}</option>)}
      </select>
      <select class="compare" aria-label="compare with" value={String(model.view.compare)} onChange={(event) => model.address.change({ compare: Number(event.currentTarget.value) })}>
        {EARLIER.map((one) => <option key={one.seconds} value={String(one.seconds)}>{one.seconds ? `with ${one.label}` : "compare"}</option>)}
        {!EARLIER.some((one) => one.seconds === model.view.compare) && <option value={String(model.view.compare)}>with {duration(model.view.compare)} before</option>}
      </select>
      <button type="button" class="plain when" title={`${renderSpan(span, model.view.utc)}\nchoose from and to (d)`} onClick={() => model.openSheet("time")}>{briefSpan(span, model.view.utc)}</button>
    </span>
  );
}

function LiveBadge({ model }: { model: Model }) {
  const [word, kind] = liveWords(model);
  if (model.live.state === "archive") return <span class="live archive">{word}</span>;
  return (
    <button type="button" class={`live ${kind}`} aria-pressed={model.time.isLive} title={kind === "lost" ? word : "live or paused (l)"} onClick={() => model.toggleLive()}>
      <span class="dot" aria-hidden="true" /><span class="live-word">{word}</span>
    </button>
  );
}

export function liveWords(model: Model): [string, string] {
  switch (model.live.state) {
    case "archive":
      return [model.source.offline ? "file, offline" : "archive", "archive"];
    case "paused":
      return ["paused", "paused"];
    case "connecting":
      return ["live, connecting ...", "paused"];
    case "lost":
      return [`live lost: newest sample is ${duration(Math.round(model.time.newestAge))} old${model.live.reason ? ` (${model.live.reason})` : ""}`, "lost"];
    case "live":
      return [model.live.lag === null ? "live" : `live, ${model.live.lag.toFixed(1)} s behind`, "on"];
  }
}

function searchItems(model: Model): Item[] {
  const metrics: Item[] = model.panels.metrics.map((metric) => ({
    key: `metric ${metric.scope} ${metric.name}`,
    group: "metrics",
    name: metric.name,
    more: `${metric.scope} ${metric.help}`,
    pick: () => model.panels.add(metric),
  }));
  const containers: Item[] = (model.data.containers.value?.containers ?? []).map((row) => ({
    key: `container ${row.id}`,
    group: "containers",
    name: plain(row.name),
    more: `${row.namespace ?? ""} ${row.short_id} ${quantity(row.value, model.data.containers.value?.unit ?? "")}`,
    pick: () => model.toggleContainer(row),
  }));
  return [...containers, ...metrics];
}
