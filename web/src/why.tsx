/** The drawer that explains a selection: every container and metric by its change against as long a time before. */

import { useEffect, useState } from "preact/hooks";
import { Failure } from "./api";
import { brief, plain, quantity, shorten, spoken, words } from "./format";
import type { Model } from "./model";
import { isDark, stroke } from "./theme";
import { clock, duration, zone } from "./time";
import type { ShiftJson, ShiftsJson } from "./types";

interface Found {
  key: string;
  answer: ShiftsJson | null;
  failure: string;
}

export function Why({ model }: { model: Model }) {
  const [found, setFound] = useState<Found | null>(null);
  const { why, node, namespace, qos, labels, search, utc } = model.view;
  const key = JSON.stringify([why, node, namespace, qos, labels, search]);
  useEffect(() => {
    if (!why) return;
    const stop = new AbortController();
    model.source.changes(why, { namespace, qos, labels, search }, stop.signal).then(
      (answer) => { if (!stop.signal.aborted) setFound({ key, answer, failure: "" }); },
      (error: unknown) => { if (!stop.signal.aborted) setFound({ key, answer: null, failure: error instanceof Failure ? `${error.title}: ${error.detail}. ${error.hint}` : String(error) }); },
    );
    return () => stop.abort();
  }, [key]);
  const mine = found?.key === key ? found : null;
  return (
    <aside class="drawer why" aria-label="what changed here">
      <header>
        <h2>what changed here</h2>
        <button type="button" class="plain close" aria-label="close what changed here (Esc)" onClick={() => model.address.change({ drawer: "", why: null }, false)}>×</button>
      </header>
      {why
        ? <p class="faint">{clock(why.from, utc)} - {clock(why.to, utc)} {zone(utc, why.to)} ({duration(why.to - why.from)}), against as long before</p>
        : <p>Hold Alt and drag over a bump, or press w to look at the range that is drawn.</p>}
      {why && !mine && <p class="faint" role="status">comparing every container ...</p>}
      {mine?.failure && <p role="alert">{mine.failure}</p>}
      {mine?.answer && <Changes model={model} answer={mine.answer} />}
    </aside>
  );
}

function Changes({ model, answer }: { model: Model; answer: ShiftsJson }) {
  return (
    <>
      <p class="headline" role="status">{headline(answer)}</p>
      {answer.unseen.length > 0 && <p class="faint">{plain(answer.unseen.slice(0, 3).join(", "))} recorded little or nothing before the selection: what is new there may only be newly recorded.</p>}
      <ol class="changes">
        {answer.changes.map((one) => <Change key={`${one.container} ${one.metric}`} model={model} one={one} />)}
      </ol>
      <p class="faint">{answer.pairs} curves of {answer.containers} containers compared; the {answer.changes.length} largest changes are shown.</p>
    </>
  );
}

function headline({ changes, containers }: ShiftsJson): string {
  const [first] = changes;
  if (!first) return `Nothing changed beyond noise in ${containers} containers.`;
  return `${shorten(brief(first.name), 40)} changed most: ${tell(first)}.`;
}

/** "memory 512 MiB instead of 310 MiB" */
function tell(one: ShiftJson): string {
  if (one.before === null) return `${words(one.metric)} ${quantity(one.after, one.unit)}, not there before`;
  if (one.after === null) return `gone; ${words(one.metric)} was ${quantity(one.before, one.unit)}`;
  return `${words(one.metric)} ${quantity(one.after, one.unit)} instead of ${quantity(one.before, one.unit)}`;
}

function Change({ model, one }: { model: Model; one: ShiftJson }) {
  const rose = (one.after ?? 0) >= (one.before ?? 0);
  const colour = stroke(model.panels.palette.inkOf({ id: one.container, name: one.name }), isDark(model.view.theme));
  return (
    <li>
      <button type="button" class="change" title={`${plain(one.name)}\n${spoken(one.sentence)}\nclick: draw it`} onClick={() => model.drawChange(one)}>
        <span class="head"><span class="way" aria-hidden="true">{rose ? "▲" : "▼"}</span> <bdi>{plain(shorten(brief(one.name), 36))}</bdi>{model.many && <span class="faint"> {plain(shorten(one.node, 20))}</span>}</span>
        <span class="text">{tell(one)}</span>
        <TwoCurves one={one} colour={colour} />
      </button>
    </li>
  );
}

const WIDTH = 280;
const HEIGHT = 36;

/** Before and after on one scale; before is faint. */
function TwoCurves({ one, colour }: { one: ShiftJson; colour: string }) {
  const all = [...one.before_curve, ...one.after_curve];
  const most = Math.max(...all.map((value) => value ?? 0), 1e-12);
  const path = (values: (number | null)[], from: number): string => {
    let down = false;
    return values.map((value, place) => {
      if (value === null) {
        down = false;
        return "";
      }
      const step = `${down ? "L" : "M"}${(((from + place) / Math.max(all.length - 1, 1)) * WIDTH).toFixed(1)} ${(HEIGHT - 2 - (Math.max(value, 0) / most) * (HEIGHT - 4)).toFixed(1)}`;
      down = true;
      return step;
    }).join("");
  };
  const middle = (one.before_curve.length / Math.max(all.length - 1, 1)) * WIDTH;
  return (
    <svg class="two" viewBox={`0 0 ${WIDTH} ${HEIGHT}`} preserveAspectRatio="none" aria-hidden="true">
      <rect x={middle} y="0" width={WIDTH - middle} height={HEIGHT} class="selected" />
      <path d={path(one.before_curve, 0)} class="was" />
      <path d={path(one.after_curve, one.before_curve.length)} stroke={colour} class="is" />
    </svg>
  );
}
