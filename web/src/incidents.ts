/** Incidents as cards: which, in which order, and the view that shows one. */

import type { IncidentChangeJson, IncidentJson, IncidentsJson, MetricJson } from "./types";
import type { Span } from "./time";
import type { PanelChoice, View } from "./view";

export const CARDS_AT_MOST = 5;
const CONTAINERS_AT_MOST = 8;
const PANELS_OF_ONE = 4;
const ROOM_SECONDS = 120;

const TITLES: Record<IncidentJson["kind"], string> = {
  taken: "took from others",
  oom_kill: "killed for memory",
  throttled: "held back by its own CPU limit",
  deploy: "uses more since a deploy",
  crash_loop: "restarts again and again",
  change: "rose and stayed there",
  unexplained: "waited; nobody was seen who caused it",
};

/** By what was taken or lacked: the panels that show it. */
const PANELS: Record<string, string[]> = {
  cpu: ["cpu", "pressure_cpu", "cpu_throttled"],
  memory: ["memory", "pressure_memory", "cpu"],
  disk: ["disk_write", "disk_read", "pressure_io", "cpu"],
  network: ["network_receive", "network_transmit", "cpu"],
  "memory bandwidth": ["cpu", "memory"],
  GPU: ["gpu_utilization", "gpu_memory", "cpu"],
};

/** Names of incidents that have another name as a metric. */
const METRICS: Record<string, string> = { memory_anon: "memory", memory_file: "memory", oom_kill: "memory", disk: "disk_write", network: "network_receive", gpu: "gpu_utilization", restarts: "cpu" };

/** One for each cause, the weightiest first, over all nodes. */
export function cardsOf(answer: IncidentsJson | null): IncidentJson[] {
  const all = (answer?.nodes ?? []).flatMap((node) => node.incidents);
  return all.sort((a, b) => (b.weight ?? 0) - (a.weight ?? 0) || a.from - b.from).slice(0, CARDS_AT_MOST);
}

export function keyOf(incident: IncidentJson): string {
  const who = incident.causes[0] ?? incident.victims[0];
  return `${incident.kind}.${who?.workload ?? incident.node}.${Math.round(incident.from)}`;
}

export function whoOf(incident: IncidentJson): string {
  return incident.causes[0]?.workload ?? incident.victims[0]?.workload ?? incident.node;
}

export function titleOf(incident: IncidentJson): string {
  return incident.kind === "change" && incident.over ? "rose for a while" : TITLES[incident.kind];
}

/** Whether it concerns one of these workloads. */
export function concerns(incident: IncidentJson, workloads: ReadonlySet<string>): boolean {
  return changesOf(incident).some((change) => workloads.has(change.workload));
}

function changesOf(incident: IncidentJson): IncidentChangeJson[] {
  return [...incident.causes, ...incident.victims];
}

/** Range, containers and panels that show it. */
export function viewOf(incident: IncidentJson, metrics: MetricJson[], bounds: Span, many: boolean): Partial<View> {
  const containers = [...new Set(changesOf(incident).map((change) => change.container))].slice(0, CONTAINERS_AT_MOST);
  return { range: spanOf(incident, bounds), containers, panels: panelsOf(incident, metrics), hidden: [], only: "", focus: 0, finding: "", incident: keyOf(incident), ...(many ? { node: incident.node } : {}) };
}

/** The incident with as much around it as it is long, so that what was usual is seen. */
export function spanOf(incident: IncidentJson, bounds: Span): Span {
  const killed = incident.kind === "oom_kill" ? incident.killed : 0;
  const to = Math.max(incident.to, killed);
  const room = Math.max(ROOM_SECONDS, (to - incident.from) / 2);
  return { from: Math.max(bounds.from, incident.from - room), to: Math.min(Math.max(bounds.to, to), to + room) };
}

function panelsOf(incident: IncidentJson, metrics: MetricJson[]): PanelChoice[] {
  const named = changesOf(incident).map((change) => METRICS[change.metric] ?? change.metric);
  const wanted = [...new Set([...(PANELS[incident.resource] ?? []).slice(0, 1), ...named, ...(PANELS[incident.resource] ?? []), "cpu", "memory"])];
  const known = wanted.flatMap((name) => metrics.filter((metric) => metric.name === name).slice(0, 1));
  return known.slice(0, PANELS_OF_ONE).map((metric) => ({ metric: metric.name, scope: metric.scope === "container" ? "" : metric.scope, title: "" }));
}
