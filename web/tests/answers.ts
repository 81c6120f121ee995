import type { Value } from "../src/series";
import type { TimeseriesJson } from "../src/types";

/** A server's answer of one second a column. */
export function answer(columns: Record<string, Value[]>, unit = "cores"): TimeseriesJson {
  const length = Object.values(columns)[0]?.length ?? 0;
  return {
    metric: "cpu", unit, kind: "gauge", scope: "container", rate: true, from: 0, to: length - 1, bucket_seconds: 1,
    time: Array.from({ length }, (_, index) => index),
    series: Object.entries(columns).map(([id, mean]) => ({ id, name: id, node: "n", labels: {}, mean: [...mean], min: [...mean], max: [...mean], samples: mean.length, limit: null, gaps: [], lives: [] })),
    missing: [],
    refused: [],
    recorded: [],
  };
}
