/** The strip under the tiles: of a live node one line about now; at most five cards, one for each cause; a click shows one. */

import { isOver, joinCards, tellNow, titleIs, whoIs, type Card } from "./cards";
import { confidence, plain, shorten, spoken } from "./format";
import { cardsOf, concerns, keyOf, titleOf, whoOf } from "./incidents";
import type { Model } from "./model";
import { tellShort } from "./tiles";
import { minute, tellTimes } from "./time";
import type { IncidentJson, NodeFindingJson } from "./types";

export function IncidentStrip({ model }: { model: Model }) {
  const { value, trouble } = model.data.incidents;
  const { isTold, wrong } = model.cards;
  const cards = shownCards(model);
  const waiting = trouble ? `Incidents could not be read: ${trouble.failure.detail || trouble.failure.title}.` : "Looking for incidents ...";
  return (
    <section class={`incidents ${isTold ? "told" : ""}`} aria-label="incidents">
      {isTold && <p class="now" role="status" title={tellLine(model)}>{tellLine(model)}</p>}
      {!value && cards.length === 0 && (!isTold || trouble) && <p class="faint" role="status">{waiting}</p>}
      {value && cards.length === 0 && !(isTold && wrong && !model.data.isFiltered) && <p class="faint">{nothing(model)}</p>}
      {cards.map((card) => card.finding ? <FindingCard key={card.key} model={model} card={card} finding={card.finding} /> : card.incident && <IncidentCard key={card.key} model={model} incident={card.incident} />)}
    </section>
  );
}

/** With a filter those that concern a container it admits. */
export function shownCards(model: Model): Card[] {
  const { isTold, wrong } = model.cards;
  const incidents = model.data.incidents.value;
  const cards = isTold ? joinCards(incidents, wrong) : cardsOf(incidents).map((incident) => ({ key: keyOf(incident), finding: null, incident }));
  const rows = model.data.containers.value?.containers;
  if (!model.data.isFiltered || !rows) return cards;
  const workloads = new Set(rows.map((row) => row.workload));
  return cards.filter(({ finding, incident }) => (finding && workloads.has(finding.workload)) || (incident && concerns(incident, workloads)));
}

/** What is known of now; a lost connection changes words, never the height. */
function tellLine(model: Model): string {
  const { wrong, lostSince } = model.cards;
  const { utc } = model.view;
  const [looked] = model.data.incidents.value?.nodes ?? [];
  const quiet = looked && shownCards(model).length === 0 && !model.data.isFiltered ? `: no finding now, no incident from ${minute(looked.from, utc)} to ${minute(looked.to, utc)}` : "";
  const told = wrong ? plain(tellNow(wrong, quiet, tellShort(model.data.summary.value))) : "";
  if (lostSince) return `Not told since ${minute(lostSince, utc)}: the viewer does not answer; trying again.${told ? ` Before: ${told}` : ""}`;
  if (model.live.state === "lost") return `No new samples arrive.${told ? ` Before: ${told}` : ""}`;
  return told || "Asking the watcher what is wrong now ...";
}

function nothing(model: Model): string {
  if (model.data.isFiltered) return "No incident concerns the containers of this filter.";
  const [node] = model.data.incidents.value?.nodes ?? [];
  if (!node) return "No incident was looked for: there is nothing to look at yet.";
  const { utc } = model.view;
  const short = tellShort(model.data.summary.value);
  return `No incident from ${minute(node.from, utc)} to ${minute(node.to, utc)}: nothing unusual was seen that hurt anybody.${short ? ` But at the end ${short}.` : ""}`;
}

function FindingCard({ model, card, finding }: { model: Model; card: Card; finding: NodeFindingJson }) {
  const { utc } = model.view;
  const chosen = model.view.incident === finding.id;
  const over = isOver(finding);
  const said = spoken(tellTimes(finding.sentence, utc, finding.updated));
  const limit = !over && finding.time_to_limit_seconds !== null ? ` · limit at ${minute(finding.updated + finding.time_to_limit_seconds, utc)}` : "";
  const until = finding.ended === null ? ", still so" : ` - ${minute(finding.ended, utc)}`;
  return (
    <button type="button" class={`card finding ${finding.severity} ${over ? "over" : ""} ${chosen ? "chosen" : ""}`} aria-pressed={chosen} title={said} onClick={() => model.openCard(card)}>
      <span class="card-head"><bdi class="card-who">{plain(shorten(whoIs(finding), 32))}</bdi>{model.many && <span class="faint"> on {plain(shorten(finding.node, 20))}</span>} <span class="card-kind">{over ? "over: " : ""}{titleIs(finding)}</span></span>
      <span class="card-said">{said}</span>
      <span class="card-foot faint">{minute(finding.onset, utc)}{until}{limit}</span>
    </button>
  );
}

function IncidentCard({ model, incident }: { model: Model; incident: IncidentJson }) {
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
