/** Rows of the list by workload: what a Deployment's pods used together over the range. */

import type { ContainerJson } from "./types";

export interface WorkloadRow {
  key: string;
  name: string;
  kind: string;
  namespace: string;
  /** The sum over its containers; of a share of time their mean. null: none was measured. */
  overSpan: number | null;
  pods: number;
  /** Of all its containers together; null where none was measured. */
  spark: (number | null)[];
  rows: ContainerJson[];
}

const SHARES = new Set(["ratio", "share"]);

/** The largest first; what was not measured last. */
export function groupRows(all: ContainerJson[], unit: string): WorkloadRow[] {
  const groups = new Map<string, ContainerJson[]>();
  for (const row of all) {
    const key = `${row.namespace ?? ""}/${row.workload}`;
    groups.set(key, [...(groups.get(key) ?? []), row]);
  }
  return [...groups].map(([key, rows]) => makeRow(key, rows, unit)).sort((a, b) => (b.overSpan ?? -Infinity) - (a.overSpan ?? -Infinity) || a.key.localeCompare(b.key));
}

function makeRow(key: string, rows: ContainerJson[], unit: string): WorkloadRow {
  const used = rows.map((row) => row.over_span).filter((value) => value !== null);
  const sum = used.reduce((total, value) => total + value, 0);
  const overSpan = used.length === 0 ? null : SHARES.has(unit) ? sum / used.length : sum;
  const pods = new Set(rows.map((row) => row.pod ?? row.id)).size;
  const [first] = rows;
  return { key, name: first?.workload ?? "", kind: first?.workload_kind ?? "", namespace: first?.namespace ?? "", overSpan, pods, spark: joinSparks(rows, SHARES.has(unit)), rows };
}

function joinSparks(rows: ContainerJson[], isShare: boolean): (number | null)[] {
  const length = Math.max(0, ...rows.map((row) => row.spark.length));
  return Array.from({ length }, (_, place) => {
    const known = rows.map((row) => row.spark[place] ?? null).filter((value) => value !== null);
    const sum = known.reduce((total, value) => total + value, 0);
    return known.length === 0 ? null : isShare ? sum / known.length : sum;
  });
}
