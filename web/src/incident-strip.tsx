/** The strip of incidents under the tiles: at most five cards, one for each cause; a click shows one. */

import { confidence, plain, shorten, spoken } from "./format";
import { cardsOf, concerns, keyOf, titleOf, whoOf } from "./incidents";
import type { Model } from "./model";
import { minute, tellTimes } from "./time";
import type { IncidentJson } from "./types";

export function IncidentStrip({ model }: { model: Model }) {
  const { value, trouble } = model.data.incidents;
  const cards = shownCards(model);
  if (!value) return <section class="incidents" aria-label="incidents"><p class="faint" role="status">{trouble ? `Incidents could not be read: ${trouble.failure.detail || trouble.failure.title}.` : "Looking for incidents ..."}</p></section>;
  return (
    <section class="incidents" aria-label="incidents">
      {cards.length === 0 && <p class="faint">{nothing(model)}</p>}
      {cards.map((incident) => <Card key={keyOf(incident)} model={model} incident={incident} />)}
    </section>
  );
}

/** With a filter those that concern a container it admits. */
export function shownCards(model: Model): IncidentJson[] {
  const cards = cardsOf(model.data.incidents.value);
  const rows = model.data.containers.value?.containers;
  if (!model.data.isFiltered || !rows) return cards;
  const workloads = new Set(rows.map((row) => row.workload));
  return cards.filter((one) => concerns(one, workloads));
}

function nothing(model: Model): string {
  if (model.data.isFiltered) return "No incident concerns the containers of this filter.";
  const [node] = model.data.incidents.value?.nodes ?? [];
  if (!node) return "No incident was looked for: there is nothing to look at yet.";
  const { utc } = model.view;
  return `No incident from ${minute(node.from, utc)} to ${minute(node.to, utc)}: nothing unusual was seen that hurt anybody.`;
}

function Card({ model, incident }: { model: Model; incident: IncidentJson }) {
  const { utc } = model.view;
  const chosen = model.view.incident === keyOf(incident);
  const from = incident.kind === "oom_kill" ? incident.killed : incident.from;
  const until = incident.kind === "oom_kill" || incident.kind === "deploy" ? "" : incident.over ? ` - ${minute(incident.to, utc)}` : ", still so at the end";
  const said = spoken(tellTimes(incident.sentence, utc, incident.to));
  return (
    <button type="button" class={`card ${incident.kind} ${chosen ? "chosen" : ""}`} aria-pressed={chosen} title={said} onClick={() => model.openIncident(incident)}>
      <span class="card-head"><bdi class="card-who">{plain(shorten(whoOf(incident), 32))}</bdi>{model.many && <span class="faint"> on {plain(shorten(incident.node, 20))}</span>} <span class="card-kind">{titleOf(incident)}</span></span>
      <span class="card-said">{said}</span>
      <span class="card-foot faint">{minute(from, utc)}{until}{incident.confidence === null ? "" : ` · ${confidence(incident.confidence)}`}</span>
    </button>
  );
}
