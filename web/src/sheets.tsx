/** The dialogs over the page: keys, export, metric picker, and the list of containers on a narrow screen. */

import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Finder, type Item } from "./finder";
import { unitWords } from "./format";
import { KEYS } from "./keys";
import { ContainerList } from "./list";
import type { Model } from "./model";
import { lazy } from "./lazy";

const Export = lazy(async () => (await import("./export-sheet")).Export);
const Rightsize = lazy(async () => (await import("./rightsize")).Rightsize);
const TimeSheet = lazy(async () => (await import("./time-sheet")).TimeSheet);
const ViewsSheet = lazy(async () => (await import("./views-sheet")).ViewsSheet);

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
    case "time":
      return <Sheet key={sheet} model={model} title="from and to"><TimeSheet model={model} /></Sheet>;
    case "views":
      return <Sheet key={sheet} model={model} title="saved views"><ViewsSheet model={model} /></Sheet>;
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
