/** The API's answers, as they travel. Times are epoch seconds; null is "not measured". */

export type Value = number | null;

export interface Instance {
  version: string;
  node: string;
  nodes: string[];
  from: number | null;
  to: number | null;
  live: boolean;
  lag_seconds: number | null;
  agent: string | null;
  cores: number | null;
  memory_bytes: number | null;
  containers: number;
  limit: { panels: number; max_points: number; containers: number; studies?: number };
  problems: { file: string; reason: string }[];
}

export interface Tile {
  id: string;
  title: string;
  value: Value;
  of: Value;
  unit: string;
  sentence: string;
  spark: Value[];
  /** Of pressure: what is waited for. */
  resource?: string | null;
}

export interface Summary {
  tiles: Tile[];
  restarts: number;
  oom_kills: number;
}

export interface Metric {
  name: string;
  scope: string;
  plain: boolean;
  kind: string;
  unit: string;
  help: string;
  priority: number | null;
}

export interface Filters {
  namespaces: { name: string; count: number }[];
  qos_classes: (string | { name: string; count: number })[];
  nodes: string[];
  labels: Record<string, string[]>;
}

export interface Container {
  id: string;
  short_id: string;
  name: string;
  container: string | null;
  pod: string | null;
  namespace: string | null;
  qos_class: string | null;
  node: string | null;
  image: string | null;
  labels: Record<string, string>;
  restarts: number | null;
  first_seen: number;
  last_seen: number;
  state: string;
  value: Value;
  spark: Value[];
  limit: Value;
}

export interface Containers {
  containers: Container[];
  total: number;
  truncated: boolean;
  metric: string;
  unit: string;
}

export interface Gap {
  from: number;
  to: number;
  reason: string;
}

export interface Series {
  id: string;
  name: string;
  labels: Record<string, string>;
  mean: Value[];
  min: Value[];
  max: Value[];
  samples: number;
  limit: Value;
  gaps: Gap[];
}

export interface Timeseries {
  metric: string;
  unit: string;
  kind: string;
  scope: string;
  rate: boolean;
  from: number;
  to: number;
  bucket_seconds: number;
  time: number[];
  series: Series[];
  missing: { id: string; reason: string }[];
}

export interface Study {
  id: string;
  title: string;
  help: string;
}

export interface Finding {
  kind: string;
  from: number;
  to: number;
  at: number | null;
  confidence: number;
  magnitude: Value;
  unit: string;
  before: Value;
  after: Value;
  sentence: string;
  period_seconds?: number;
  strength?: number;
  slope_per_second?: number;
  limit?: Value;
  time_to_limit_seconds?: Value;
  low?: Value;
  high?: Value;
}

export interface StudyResult {
  study: string;
  series: { metric: string; container: string | null; node: string | null; id?: string | null };
  status: "found" | "none" | "not_enough_data" | "not_collected";
  reason: string | null;
  sentence?: string;
  findings: Finding[];
}

export interface StudyAnswer {
  study: string;
  results: StudyResult[];
}

export interface NodeEvent {
  at: number;
  kind: string;
  container: string | null;
  name: string;
  sentence: string;
}

export interface Events {
  events: NodeEvent[];
  truncated: boolean;
}

export interface LivePoints {
  at: number;
  lag_seconds: number | null;
  panels: Record<string, Record<string, Value>>;
}

export interface LiveStatus {
  live: boolean;
  reason: string | null;
  lag_seconds: number | null;
}

/** What export.html carries in #nodescope-data. */
export interface Carried {
  instance: Instance;
  metrics: { metrics: Metric[] };
  containers: Containers;
  filters: Filters;
  events: Events;
  summary: Summary;
  studies: { studies: Study[] };
  timeseries: Timeseries[];
  findings: StudyAnswer[];
}
