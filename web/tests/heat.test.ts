import { describe, expect, it } from "vitest";
import { heatColour, tellHeat } from "../src/heat";
import type { HeatRowJson } from "../src/types";

function row(name: string, of: HeatRowJson["of"], share: (number | null)[], kills = 0): HeatRowJson {
  return { id: name, name, namespace: null, node: "n", of, whole: 1, kills, share };
}

describe("the heat map", () => {
  it("is red only from nine tenths of a limit on", () => {
    const red = heatColour(1, "limit", false);
    expect(heatColour(0.9, "limit", false)).toBe(red);
    expect(heatColour(0.89, "limit", false)).not.toBe(red);
    expect(heatColour(1, "node", false)).not.toBe(red);
  });

  it("says who is worst and how many came near", () => {
    const answer = { metric: "memory", bucket_seconds: 60, time: [0, 60], total: 2, rows: [row("web/cache", "limit", [0.5, 0.97], 1), row("web/api", "limit", [0.2, null])] };
    expect(tellHeat(answer, true)).toBe("1 of 2 came within a tenth of its limit; worst is web/cache, highest 97 % of its limit at 00:01, killed for memory once.");
    expect(tellHeat({ ...answer, rows: [] }, true)).toBe("No container was measured in this range.");
  });
});
