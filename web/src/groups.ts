/** Sums by namespace, workload or node: as series that a panel draws, and stacked on each other. */

import type { Value } from "./series";
import type { GroupsJson, SeriesJson, TimeseriesJson } from "./types";

/** Metrics that the server reads of all containers at once (use/answers/swept/sheet.py; a test compares both). */
export const SWEPT: readonly string[] = ["cpu", "memory", "pressure_cpu", "pressure_memory", "pressure_io", "cpu_throttled", "disk_read", "disk_write", "network_receive", "network_transmit", "threads"];

/** How a panel's series were joined; empty: each is one container, or one of another scope. */
export type Joined = "" | "sum" | "max";

/** A group as a series: its extremes are its means, because extremes of single containers do not add up. */
export function seriesOf(answer: GroupsJson, span: { from: number; to: number }): TimeseriesJson {
  return {
    metric: answer.metric,
    unit: answer.unit,
    kind: "gauge",
    scope: answer.group,
    rate: false,
    from: span.from,
    to: span.to,
    bucket_seconds: answer.bucket_seconds,
    time: answer.time,
    missing: [],
    refused: [],
    recorded: [],
    series: answer.groups.map((group): SeriesJson => ({
      id: `group:${group.key}`,
      name: group.name,
      node: group.node,
      labels: { containers: String(group.containers) },
      mean: group.mean,
      min: group.mean,
      max: group.mean,
      limit: null,
      gaps: [],
      lives: [],
      samples: 0,
    })),
  };
}

/** Each shown series on top of those before it; null where none of them was measured. */
export function stack(series: readonly SeriesJson[], shown: (series: SeriesJson) => boolean): Value[][] {
  let below: Value[] = [];
  return series.map((one) => {
    if (!shown(one)) return one.mean.map(() => null);
    const mine = one.mean.map((value, place) => (value == null && below[place] == null ? null : (value ?? 0) + (below[place] ?? 0)));
    below = mine;
    return mine;
  });
}

/** The column below each shown one; null: the axis. */
export function belowEach(columns: readonly Value[][], isShown: readonly boolean[]): (Value[] | null)[] {
  let below: Value[] | null = null;
  return columns.map((column, index) => {
    const mine = below;
    if (isShown[index]) below = column;
    return mine;
  });
}
