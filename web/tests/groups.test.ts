import { describe, expect, it } from "vitest";
import { belowEach, seriesOf, stack } from "../src/groups";
import { sectionsOf } from "../src/sections";
import { metric } from "./page";

const ANSWER = {
  metric: "cpu", unit: "cores", join: "sum" as const, group: "namespace" as const, bucket_seconds: 5, time: [0, 5, 10], total: 2,
  groups: [{ key: "shop", name: "shop", node: "n", containers: 2, mean: [1, 2, null] }, { key: "ml", name: "ml", node: "n", containers: 1, mean: [3, null, null] }],
};

describe("sums of groups", () => {
  it("stand on each other; null is where none was measured", () => {
    const { series } = seriesOf(ANSWER, { from: 0, to: 15 });
    expect(stack(series, () => true)).toEqual([[1, 2, null], [4, 2, null]]);
  });

  it("leave out what is hidden", () => {
    const { series } = seriesOf(ANSWER, { from: 0, to: 15 });
    const columns = stack(series, (one) => one.name === "ml");
    expect(columns[1]).toEqual([3, null, null]);
    expect(belowEach(columns, [false, true])).toEqual([null, null]);
    expect(belowEach(stack(series, () => true), [true, true])).toEqual([null, [1, 2, null]]);
  });
});

describe("sections of a node", () => {
  it("are those that were measured", () => {
    const found = sectionsOf([metric("disk.sectors_read", { scope: "disk" }), metric("cpu")]);
    expect(found.map((one) => [one.name, one.panels.map((panel) => `${panel.scope}:${panel.metric}`)])).toEqual([["disks", ["disk:disk_read"]]]);
  });
});
