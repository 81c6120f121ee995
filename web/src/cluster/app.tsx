/** The page of many nodes: how the cluster is in one sentence, then the wall, workloads, or a comparison. */

import { useEffect, useRef } from "preact/hooks";
import { plain, spoken } from "../format";
import { useSignal } from "../signal";
import { applyTheme, isDark, nextTheme } from "../theme";
import { CHOICES, duration, isSpan, renderLength, renderSpan, tellTimes, zone, type Range } from "../time";
import { Compare } from "./compare";
import { CLUSTER_KEYS } from "./keys";
import type { ClusterModel } from "./model";
import { TABS, USUAL_SECONDS, type Tab } from "./view";
import { briefWhy, Wall } from "./wall";
import { Workloads } from "./workloads";

const TAB_WORDS: Record<Tab, string> = { nodes: "nodes", workloads: "workloads", compare: "compare" };
const RANGES: readonly { label: string; range: Range | null }[] = [
  { label: "last hour", range: { last: 3600 } },
  { label: "last 3 hours", range: null },
  ...CHOICES.filter(({ range }) => "all" in range || (!isSpan(range) && range.last > USUAL_SECONDS)),
];

export function ClusterApp({ model }: { model: ClusterModel }) {
  useSignal(model.changed);
  const { view } = model;
  applyTheme(view.theme);
  useEffect(() => {
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = (): void => model.changed.send();
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, [model]);
  const dark = isDark(view.theme);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>to the nodes</a>
      <Top model={model} />
      <main id="main" class="cluster" tabIndex={-1}>
        <Headline model={model} />
        {view.tab === "nodes" && <Wall model={model} dark={dark} />}
        {view.tab === "workloads" && <Workloads model={model} />}
        {view.tab === "compare" && <Compare model={model} />}
      </main>
      {model.sheet && <KeySheet model={model} />}
    </>
  );
}

function Top({ model }: { model: ClusterModel }) {
  const { view } = model;
  const wall = model.wall.value;
  return (
    <header class="top cluster-top">
      <h1>nodescope</h1>
      <nav class="tabs" aria-label="what is shown">{TABS.map((tab) => <button key={tab} type="button" aria-pressed={view.tab === tab} onClick={() => model.change({ tab })}>{TAB_WORDS[tab]}</button>)}</nav>
      <RangeSelect model={model} />
      {wall && <span class="faint when">{renderSpan(model.span, view.utc)}</span>}
      {wall && <span class={`live ${wall.live ? "on" : "archive"}`}>{wall.live && <span class="dot" aria-hidden="true" />}{wall.live ? "live" : "archive"}</span>}
      <span class="spring" />
      {view.tab === "nodes" && <input id="node-search" type="search" aria-label="filter nodes by name" placeholder="/ filter nodes" value={view.search} onInput={(event) => model.change({ search: event.currentTarget.value }, false)} />}
      <button type="button" title="times in UTC, or in the time zone of this computer (u)" aria-pressed={view.utc} onClick={() => model.change({ utc: !view.utc }, false)}>times: {zone(view.utc, wall?.to ?? 0)}</button>
      <button type="button" title="theme (t)" onClick={() => model.change({ theme: nextTheme(view.theme) }, false)}>{view.theme === "system" ? "light or dark: automatic" : view.theme}</button>
      <button type="button" title="keys (?)" aria-label="? keys" onClick={() => { model.sheet = true; model.changed.send(); }}>?</button>
    </header>
  );
}

function word(range: Range | null): string {
  if (range === null) return "";
  return "all" in range ? "all" : isSpan(range) ? "fixed" : renderLength(range.last);
}

function RangeSelect({ model }: { model: ClusterModel }) {
  const current = word(model.view.range);
  const known = RANGES.some((choice) => word(choice.range) === current);
  return (
    <select aria-label="time range" value={current} onChange={(event) => {
      const choice = RANGES.find((one) => word(one.range) === event.currentTarget.value);
      if (choice) model.goTo(choice.range);
    }}>
      {!known && <option value={current}>{current === "fixed" ? `${duration(model.span.to - model.span.from)}, fixed` : `last ${current}`}</option>}
      {RANGES.map((choice) => <option key={choice.label} value={word(choice.range)}>{choice.label}</option>)}
    </select>
  );
}

function Headline({ model }: { model: ClusterModel }) {
  const { value, failure } = model.wall;
  return (
    <div class="cluster-head">
      {failure && <p class="state trouble" role="alert"><strong>{failure.title}</strong>{failure.detail && `: ${failure.detail}`} <span class="faint">{failure.hint}</span></p>}
      <p class="sentence" role="status">{value ? briefWhy(spoken(tellTimes(value.sentence, model.view.utc, value.to))) : failure ? "" : "Asking the nodes ..."}{value && value.asking > 0 && <span class="faint"> {value.asking} being asked ...</span>}</p>
      {value?.trouble && <p class="note">{spoken(plain(value.trouble))}</p>}
      {value && model.view.tab === "nodes" && <Measures model={model} />}
    </div>
  );
}

function Measures({ model }: { model: ClusterModel }) {
  const wall = model.wall.value;
  const chosen = wall?.measures.find((one) => one.id === model.view.measure);
  return (
    <div class="measures" role="group" aria-label="what the cells show">
      {wall?.measures.map((one) => <button key={one.id} type="button" aria-pressed={model.view.measure === one.id} title={one.help} onClick={() => model.change({ measure: one.id })}>{one.title}</button>)}
      <span class="faint measure-help">{chosen?.help}</span>
    </div>
  );
}

function KeySheet({ model }: { model: ClusterModel }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const close = (): void => { model.sheet = false; model.changed.send(); };
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog ref={dialog} class="sheet" aria-label="keys" onClose={close}>
      <header><h2>keys</h2><button type="button" class="plain" onClick={close}>close (Esc)</button></header>
      <table class="keys"><tbody>{CLUSTER_KEYS.filter((key) => key.shown).map((key) => <tr key={key.shown}><th scope="row"><kbd>{key.shown}</kbd></th><td>{key.does}</td></tr>)}</tbody></table>
      <p class="faint">Drag over the cells zooms, Shift-drag pans, a double click resets; the wheel zooms over the time axis, or with Ctrl. Enter on a node opens its page in the same range.</p>
    </dialog>
  );
}
