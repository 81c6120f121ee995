/** The cards of a live node: what its watcher tells, joined with incidents; which, in which order, and the view that shows one. */

import { CARDS_AT_MOST, keyOf, whoOf } from "./incidents";
import type { IncidentJson, IncidentsJson, MetricJson, NodeFindingJson, WrongJson } from "./types";
import type { PanelChoice, View } from "./view";

/** The most urgent first; what is merely curious is no card. */
const SEVERITIES = ["kill", "hurt", "waste"];
const URGENT = 2;
const AROUND_SECONDS = 300;
const NEAR_SECONDS = 300;
const PANELS_OF_ONE = 4;

const TITLES: Record<string, string> = {
  memory_leak: "grows towards its memory limit",
  oom_kill: "was killed for memory",
  disk_full: "is nearly full",
  gpu_loss: "is gone",
  crash_loop: "restarts again and again",
  noisy_neighbour: "takes from others",
  cpu_throttling: "is held back by its own CPU limit",
  waste: "asks for far more than it uses",
};

/** The same thing, as an incident calls it. */
const SAME: Record<string, IncidentJson["kind"][]> = {
  memory_leak: ["oom_kill", "change"],
  oom_kill: ["oom_kill"],
  crash_loop: ["crash_loop"],
  noisy_neighbour: ["taken"],
  cpu_throttling: ["throttled"],
};

const PANELS: Record<string, string[]> = {
  memory_leak: ["memory", "pressure_memory", "cpu"],
  oom_kill: ["memory", "pressure_memory", "cpu"],
  disk_full: ["disk_write", "disk_read", "pressure_io"],
  gpu_loss: ["gpu_utilization", "gpu_memory", "cpu"],
  crash_loop: ["cpu", "memory"],
  noisy_neighbour: ["cpu", "pressure_cpu", "pressure_memory", "pressure_io"],
  cpu_throttling: ["cpu", "cpu_throttled", "pressure_cpu"],
  waste: ["cpu", "memory"],
};

/** A card is of a finding, of an incident, or of both where they are about the same. */
export interface Card {
  key: string;
  finding: NodeFindingJson | null;
  incident: IncidentJson | null;
}

/** What is wrong now first, then incidents of the last hours, then what is over: five at the most, each thing once. */
export function joinCards(answer: IncidentsJson | null, wrong: WrongJson | null): Card[] {
  const told = (wrong?.nodes ?? []).flatMap((node) => node.findings).filter(isTold);
  const fresh = (wrong?.nodes ?? []).flatMap((node) => node.incidents).flatMap((one) => one.incidents);
  const older = (answer?.nodes ?? []).flatMap((node) => node.incidents).filter((one) => !fresh.some((other) => isSame(one, other)));
  const incidents = [...fresh, ...older].sort((a, b) => (b.weight ?? 0) - (a.weight ?? 0) || a.from - b.from);
  const ofFindings = told.map((finding) => ({ key: finding.id, finding, incident: incidents.find((one) => isAbout(one, finding)) ?? null }));
  const left = incidents.filter((one) => !told.some((finding) => isAbout(one, finding)));
  const ofIncidents = left.map((incident) => ({ key: keyOf(incident), finding: null, incident }));
  const open = ofFindings.filter(({ finding }) => !isOver(finding)).sort((a, b) => rank(a.finding) - rank(b.finding));
  return [...open, ...ofIncidents, ...ofFindings.filter(({ finding }) => isOver(finding))].slice(0, CARDS_AT_MOST);
}

/** Confirmed once, of a consequence, and not silenced: the others are for who asks. */
function isTold(finding: NodeFindingJson): boolean {
  return finding.confirmed !== null && finding.state !== "born" && SEVERITIES.includes(finding.severity) && !finding.silenced;
}

export function isOver(finding: NodeFindingJson): boolean {
  return finding.state === "resolved";
}

function rank(finding: NodeFindingJson): number {
  return SEVERITIES.indexOf(finding.severity);
}

/** The answer of a minute ago and the one of now give it slightly different times. */
function isSame(one: IncidentJson, other: IncidentJson): boolean {
  return one.kind === other.kind && one.node === other.node && whoOf(one) === whoOf(other) && one.from <= other.to + NEAR_SECONDS && other.from <= one.to + NEAR_SECONDS;
}

function isAbout(incident: IncidentJson, finding: NodeFindingJson): boolean {
  const until = finding.ended ?? Number.POSITIVE_INFINITY;
  return (
    incident.node === finding.node &&
    (SAME[finding.kind] ?? []).includes(incident.kind) &&
    // Workloads of incidents have their namespace in front where two have the same name.
    [finding.workload, whoIs(finding)].includes(whoOf(incident)) &&
    incident.to + NEAR_SECONDS >= finding.onset &&
    incident.from - NEAR_SECONDS <= until
  );
}

/** The one line: how many things are wrong now, and the first of them; or that nothing is. */
export function tellNow(wrong: WrongJson, quiet: string, short = ""): string {
  const { nodes } = wrong;
  const where = nodes.length === 1 ? (nodes[0]?.node ?? "") : `${nodes.length} nodes`;
  const urgent = nodes.flatMap((node) => node.findings).filter((one) => isTold(one) && !isOver(one) && rank(one) < URGENT).sort((a, b) => rank(a) - rank(b));
  const [worst] = urgent;
  if (worst) return `${urgent.length === 1 ? "1 thing is" : `${urgent.length} things are`} wrong on ${where}: ${whoIs(worst)} ${titleIs(worst)}.`;
  const lasting = nodes.flatMap((node) => node.incidents).flatMap((one) => one.incidents).filter((one) => !one.over && one.kind !== "oom_kill" && one.kind !== "deploy");
  if (lasting.length) return `The watcher found nothing on ${where}; ${lasting.length === 1 ? "1 incident is" : `${lasting.length} incidents are`} not over.`;
  if (nodes.length && short) return `No container stands out on ${where}, but ${short}${quiet}.`;
  return nodes.length ? `Nothing is wrong on ${where}${quiet}.` : "There are no samples to judge by yet.";
}

export function whoIs(finding: NodeFindingJson): string {
  const name = finding.namespace && finding.workload ? `${finding.namespace}/${finding.workload}` : finding.workload;
  return name || finding.device || finding.container || finding.node;
}

export function titleIs(finding: NodeFindingJson): string {
  return TITLES[finding.kind] ?? finding.kind.replaceAll("_", " ");
}

/** Range, containers and panels that show a finding which no incident is about. */
export function viewOfFinding(finding: NodeFindingJson, containers: string[], metrics: MetricJson[], newest: number, many: boolean): Partial<View> {
  const panels = (PANELS[finding.kind] ?? ["cpu", "memory"])
    .flatMap((name): PanelChoice[] => metrics.filter((metric) => metric.name === name).slice(0, 1).map((metric) => ({ metric: metric.name, scope: metric.scope === "container" ? "" : metric.scope, title: "" })))
    .slice(0, PANELS_OF_ONE);
  const to = finding.ended === null ? newest : Math.min(newest, finding.ended + AROUND_SECONDS);
  return {
    range: { from: Math.round(Math.min(finding.onset, to) - AROUND_SECONDS), to: Math.round(to) },
    containers, hidden: [], only: "", focus: 0, finding: "", incident: finding.id,
    ...(panels.length ? { panels } : {}), ...(many ? { node: finding.node } : {}),
  };
}
