/** "Copy as": the query behind a panel, written for other tools. */

import { renderQuery, seriesParams } from "./api";
import { renderMoment, type Span } from "./time";

export interface PanelQuery {
  metric: string;
  scope: string;
  containers: { id: string; lives: string[]; pod: string; container: string; namespace: string }[];
  span: Span;
  origin: string;
}

/** By plain name: the name on /metrics, and whether it is a counter. */
const PROMETHEUS: Record<string, [string, boolean]> = {
  cpu: ["container_cpu_usage_seconds_total", true],
  cpu_user: ["container_cpu_user_seconds_total", true],
  cpu_system: ["container_cpu_system_seconds_total", true],
  memory: ["container_memory_usage_bytes", false],
  memory_working_set: ["container_memory_working_set_bytes", false],
  memory_anon: ["container_memory_rss", false],
  memory_file: ["container_memory_cache", false],
  memory_peak: ["container_memory_max_usage_bytes", false],
  memory_limit: ["container_spec_memory_limit_bytes", false],
  memory_pss: ["container_memory_pss_bytes", false],
  pressure_cpu: ["container_pressure_cpu_waiting_seconds_total", true],
  pressure_memory: ["container_pressure_memory_waiting_seconds_total", true],
  pressure_io: ["container_pressure_io_waiting_seconds_total", true],
  disk_read: ["container_fs_reads_bytes_total", true],
  disk_write: ["container_fs_writes_bytes_total", true],
  oom_kills: ["container_oom_events_total", false],
  threads: ["container_threads", false],
  processes: ["container_processes", false],
  gpu_utilization: ["gpu_utilization_percent", false],
  gpu_memory: ["gpu_memory_used_bytes", false],
  gpu_power: ["gpu_power_draw_watts", false],
};

/** Null when the metric has no series on /metrics. */
export function promql(query: PanelQuery): string | null {
  const known = PROMETHEUS[query.metric];
  if (!known) return null;
  const [name, counter] = known;
  const pods = [...new Set(query.containers.map((one) => one.pod).filter(Boolean))];
  const names = [...new Set(query.containers.map((one) => one.container).filter(Boolean))];
  const selectors = [
    ...(pods.length ? [`pod=~${quoted(pods.map(escaped).join("|"))}`] : []),
    ...(names.length ? [`container=~${quoted(names.map(escaped).join("|"))}`] : []),
  ];
  const series = `${name}${selectors.length ? `{${selectors.join(", ")}}` : ""}`;
  return counter ? `rate(${series}[1m])` : series;
}

const ALERT_FOR = "5m";

/** A rule of Prometheus that fires where the threshold is crossed for five minutes; null where the metric is not on /metrics. */
export function alertRule(query: PanelQuery, threshold: number, unit: string): string | null {
  const expression = promql(query);
  if (expression === null) return null;
  const name = query.metric.split("_").map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join("");
  return [
    `- alert: ${name}Above`,
    `  expr: ${yamlText(`${expression} > ${threshold}`)}`,
    `  for: ${ALERT_FOR}`,
    "  labels:",
    "    severity: warning",
    "  annotations:",
    `    summary: ${yamlText(`${query.metric} of {{ $labels.pod }}/{{ $labels.container }} is above ${threshold} ${unit}`)}`,
    "",
  ].join("\n");
}

/** In single quotes, in which a quote is written twice. */
function yamlText(text: string): string {
  return `'${text.replaceAll("'", "''")}'`;
}

export function curl(query: PanelQuery): string {
  return `curl -sS ${shell(address(query))}`;
}

export function python(query: PanelQuery): string {
  return [
    "import json, urllib.request",
    "",
    `url = ${JSON.stringify(address(query))}`,
    "answer = json.load(urllib.request.urlopen(url))",
    'for series in answer["series"]:',
    '    print(series["name"], list(zip(answer["time"], series["mean"]))[-1])',
  ].join("\n");
}

export function duckdb(query: PanelQuery): string {
  const ids = query.containers.flatMap((one) => one.lives).map((id) => `'${id.replaceAll("'", "''")}'`);
  return [
    "-- in the data folder; every metric of these containers, raw values as the kernel gave them",
    "SELECT time, l_pod_name, l_container_name, metric_name, value",
    "FROM read_parquet('dt=*/identifier=*/*.parquet', hive_partitioning = true, union_by_name = true)",
    `WHERE time BETWEEN TIMESTAMPTZ '${stamp(query.span.from)}+00' AND TIMESTAMPTZ '${stamp(query.span.to)}+00'`,
    ...(ids.length ? [`  AND l_container_id IN (${ids.join(", ")})`] : []),
    "ORDER BY time;",
  ].join("\n");
}

export function address(query: PanelQuery): string {
  const params = seriesParams({ ...query, containers: query.containers.map((one) => one.id.slice(0, 12)) });
  return `${query.origin}/api/timeseries?${renderQuery({ ...params, from: renderMoment(query.span.from), to: renderMoment(query.span.to) })}`;
}

function stamp(at: number): string {
  return renderMoment(at).replace("T", " ").replace("Z", "");
}

function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

function quoted(text: string): string {
  return JSON.stringify(text);
}

function shell(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
