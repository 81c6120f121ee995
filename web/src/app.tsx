/** The page: top bar, tiles, list of containers, panels, drawer; and what is shown before there are data. */

import { useEffect } from "preact/hooks";
import { lazy } from "./lazy";
import { IncidentStrip } from "./incident-strip";
import { Lane } from "./lane";
import { ContainerList } from "./list";
import type { Model } from "./model";
import { Overview } from "./overview";
import { PanelView } from "./panel";
import { isHeat } from "./panels";
import { Sections } from "./sections";
import { Sheets } from "./sheets";
import { useSignal } from "./signal";
import { Trouble } from "./states";
import { applyTheme } from "./theme";
import { Tiles } from "./tiles";
import { now } from "./timers";
import { TopBar } from "./topbar";

// What is not there in the first view is loaded when it is opened.
const Drawer = lazy(async () => (await import("./drawer")).Drawer);
const Why = lazy(async () => (await import("./why")).Why);
const HeatPanel = lazy(async () => (await import("./heat")).HeatPanel);
const Who = lazy(async () => (await import("./who")).Who);

function useTheme(model: Model): void {
  const { theme } = model.view;
  applyTheme(theme);
  useEffect(() => {
    model.panels.redraw();
    const media = window.matchMedia("(prefers-color-scheme: dark)");
    const follow = (): void => {
      applyTheme(model.view.theme);
      model.panels.redraw();
      model.changed.send();
    };
    media.addEventListener("change", follow);
    return () => media.removeEventListener("change", follow);
  }, [model, theme]);
}

export function App({ model }: { model: Model }) {
  useSignal(model.changed);
  useTheme(model);
  const instance = model.data.instance.value;
  useEffect(() => {
    document.title = instance ? `${instance.node} - nodescope` : "nodescope";
  }, [instance?.node]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); document.getElementById("main")?.focus(); }}>to the panels</a>
      <TopBar model={model} />
      <p class={`notice ${model.noticeIsHarm ? "harm" : ""}`} role="status" aria-live="polite" hidden={!model.notice}>
        {model.notice}
        {model.notice && <button type="button" class="plain" aria-label="close this note" onClick={() => model.say("")}>×</button>}
      </p>
      {instance ? <Body model={model} /> : <Waiting model={model} />}
      <Sheets model={model} />
    </>
  );
}

function Waiting({ model }: { model: Model }) {
  const { trouble } = model.data.instance;
  return (
    <main id="main" class="whole" tabIndex={-1}>
      {trouble
        ? <Trouble trouble={trouble} retry={() => model.data.requests.retry(model.data.instance)} way={model.view.node ? { words: "show all nodes", go: () => model.address.change({ node: "", containers: [] }) } : null} />
        : <p class="state" role="status">{model.data.starting ? "The viewer has rested and is starting" : "Asking the viewer what it has"}{since(model.data.instance.loadingSince)}</p>}
    </main>
  );
}

function since(start: number): string {
  const seconds = start ? Math.floor(now() - start) : 0;
  return seconds >= 2 ? `, for ${seconds} s now ...` : " ...";
}

function Body({ model }: { model: Model }) {
  const { view } = model;
  if (model.data.instance.value?.to === null) return <Empty model={model} />;
  return (
    <div class={`body ${view.drawer ? "with-drawer" : ""} ${view.who ? "on-page" : ""}`}>
      <Tiles model={model} />
      <IncidentStrip model={model} />
      <aside class="side" aria-label="containers"><ContainerList model={model} /></aside>
      <main id="main" class="main" tabIndex={-1} aria-label="panels">
        {view.who ? <Who model={model} /> : <Sections model={model} />}
        <Lane model={model} />
        <div class={`panels of-${Math.min(model.panels.list.length, 12)}`}>
          {model.panels.list.map((panel, index) => (isHeat(panel.choice) ? <HeatPanel key={panel.key} model={model} panel={panel} index={index} /> : <PanelView key={panel.key} model={model} panel={panel} index={index} />))}
        </div>
        <Overview model={model} />
      </main>
      {view.drawer && (view.drawer === "why" ? <Why model={model} /> : <Drawer model={model} />)}
    </div>
  );
}

/** No sample was recorded yet: why, and what to do next. */
function Empty({ model }: { model: Model }) {
  const problems = model.data.instance.value?.problems ?? [];
  return (
    <main id="main" class="whole" tabIndex={-1}>
      <section class="state">
        <h2>There are no samples in this data folder yet</h2>
        <p>An agent writes its first file after about a minute and a half. Start one with <code>nodescope up</code>, or look at a made-up node with <code>nodescope demo</code>.</p>
        {problems.map((problem) => <p key={problem.file}><code>{problem.file}</code>: {problem.reason}</p>)}
        <button type="button" onClick={() => model.data.requests.retry(model.data.instance)}>look again</button>
      </section>
    </main>
  );
}
