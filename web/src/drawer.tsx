/** The drawer of findings: one sentence and a confidence each; a click shows the finding in its panel. */

import { Compared } from "./compared";
import { kindWord, limitAt, studyWord, type FindingRow } from "./findings";
import { brief, confidence, plain, shorten, spoken, words } from "./format";
import type { Model } from "./model";
import { Trouble } from "./states";
import { clock, tellTimes } from "./time";

export function Drawer({ model }: { model: Model }) {
  const all = model.view.study === "summary" ? model.panels.allFindings : model.panels.findings;
  const busy = model.panels.list.find((panel) => panel.studies.loadingSince > 0);
  const trouble = model.panels.list.find((panel) => panel.studies.trouble);
  return (
    <aside class="drawer" aria-label="findings">
      <header>
        <h2>findings</h2>
        <button type="button" class="plain close" aria-label="close findings (Esc)" onClick={() => model.address.change({ drawer: "" }, false)}>×</button>
      </header>
      <div class="studies" role="group" aria-label="studies">
        {[{ id: "all", title: "all", help: "Every study of a single series." }, ...model.data.studies].map((study) => (
          <button key={study.id} type="button" class="study" data-study={study.id} aria-pressed={model.view.study === study.id} title={study.help} onClick={() => { model.address.change({ study: study.id, drawer: "findings" }); model.data.studySoon(); }}>{studyWord(study.id)}</button>
        ))}
      </div>
      <p class="faint question">{model.data.studies.find((study) => study.id === model.view.study)?.help ?? "Every study, on every series that is drawn."}</p>
      <p class="faint" role="status">{busy ? `studying ${words(busy.choice.metric)} ...` : all.length === 0 && !trouble ? nothing(model) : ""}</p>
      {trouble?.studies.trouble && <Trouble small trouble={trouble.studies.trouble} retry={() => model.data.requests.retry(trouble.studies)} />}
      <Compared model={model} />
      <ol class="found">
        {all.slice(0, 100).map((found) => <Row key={`${found.panel} ${found.key} ${found.finding.to}`} model={model} found={found} />)}
      </ol>
      <Silent model={model} />
    </aside>
  );
}

function nothing(model: Model): string {
  if (model.panels.list.every((panel) => panel.studies.value === null)) return "The panels come first; their studies follow.";
  return "Nothing was found in this range: no change, no cycle, no trend beyond the noise.";
}

function Row({ model, found }: { model: Model; found: FindingRow }) {
  const { finding } = found;
  const chosen = model.view.finding === found.key;
  return (
    <li>
      <button type="button" class={`finding ${finding.kind} ${limitAt(finding) === null ? "" : "ends"} ${chosen ? "chosen" : ""}`} aria-pressed={chosen} onClick={() => model.panels.chooseFinding(found)}>
        <span class="head"><span class="kind">{kindWord(finding.kind)}</span> <bdi>{plain(shorten(brief(found.name), 44))}</bdi>{model.many && <span class="faint"> {plain(shorten(found.node, 20))}</span>}</span>
        <span class="text">{spoken(tellTimes(finding.sentence, model.view.utc, finding.to))}</span>
        <span class="faint foot">{words(found.metric)} · {confidence(finding.confidence)} · {clock(finding.at ?? finding.from, model.view.utc)}</span>
      </button>
    </li>
  );
}

/** Why series could not be studied: without it, no finding would look like no problem. */
function Silent({ model }: { model: Model }) {
  const reasons = new Map<string, Set<string>>();
  for (const panel of model.panels.list) {
    for (const result of panel.studies.value?.results ?? []) {
      if (result.status !== "not_enough_data" && result.status !== "not_collected") continue;
      const reason = result.reason ?? result.status.replaceAll("_", " ");
      const who = reasons.get(reason) ?? new Set();
      reasons.set(reason, who.add(result.series.container ?? result.series.node ?? "node"));
    }
  }
  if (reasons.size === 0) return null;
  return (
    <details class="silent">
      <summary>not studied</summary>
      {[...reasons].slice(0, 20).map(([reason, who]) => <p key={reason}><bdi>{plain(shorten([...who].slice(0, 3).join(", "), 90))}</bdi>{who.size > 3 && ` and ${who.size - 3} more`}: {reason}</p>)}
    </details>
  );
}
