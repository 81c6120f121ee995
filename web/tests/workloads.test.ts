import { describe, expect, it } from "vitest";
import { groupRows } from "../src/workloads";
import type { ContainerJson } from "../src/types";

function row(pod: string, workload: string, overSpan: number | null): ContainerJson {
  return { id: pod, pod, workload, workload_kind: "Deployment", namespace: "shop", over_span: overSpan, spark: [overSpan, null] } as ContainerJson;
}

describe("rows by workload", () => {
  const rows = [row("a-1", "a", 0.4), row("b-1", "b", 0.7), row("a-2", "a", 0.5), row("c-1", "c", null)];

  it("add up what adds up, the largest first, what was not measured last", () => {
    const found = groupRows(rows, "cores");
    expect(found.map((one) => [one.name, one.pods])).toEqual([["a", 2], ["b", 1], ["c", 1]]);
    expect(found[0]?.overSpan).toBeCloseTo(0.9);
    expect(found[2]?.overSpan).toBeNull();
    expect(found[0]?.spark[1]).toBeNull();
    expect(found[0]?.spark[0]).toBeCloseTo(0.9);
  });

  it("of a share of time are the mean", () => expect(groupRows(rows, "ratio").map((one) => one.name)).toEqual(["b", "a", "c"]));

  it("of two namespaces are two", () => expect(groupRows([rows[0]!, { ...rows[2]!, namespace: "stage" }], "cores")).toHaveLength(2));
});
