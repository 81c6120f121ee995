import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { ClusterModel } from "../src/cluster/model";
import { colourOf, isHarm, legendSteps } from "../src/cluster/ramp";
import { isCovered, joinCells, placeCells } from "../src/cluster/strip";
import { decodeView, EMPTY_VIEW, encodeView, nodeLink, type ClusterView } from "../src/cluster/view";
import { briefWhy, readout } from "../src/cluster/wall";
import { rangeParams, type ClusterSource } from "../src/cluster/source";
import type { MeasureJson, WallJson, WallNodeJson } from "../src/types";
import { FakePage } from "./page";

const CPU: MeasureJson = { id: "cpu", title: "CPU", unit: "ratio", full: 1, harm: 0.9, help: "" };

describe("the view of many nodes", () => {
  it("is the address, without loss", () => {
    const views: ClusterView[] = [
      EMPTY_VIEW,
      { ...EMPTY_VIEW, tab: "compare", measure: "pressure", range: { from: 1770000000, to: 1770003600 }, left: "a,b", right: "c/d&e=f", before: 86400, theme: "dark", utc: true },
      { ...EMPTY_VIEW, tab: "workloads", range: { all: true }, metric: "memory", workload: "<script>", search: "worker 1", node: "é" },
      { ...EMPTY_VIEW, range: { last: 21600 } },
    ];
    for (const view of views) expect(decodeView(`#${encodeView(view)}`)).toEqual(view);
  });

  it("falls back to what is usual where the address is not understood", () => {
    expect(decodeView("#tab=cats&range=soon&from=x&to=y&theme=pink&before=-1h")).toEqual(EMPTY_VIEW);
  });

  it("leads to the page of a node with the same range and the container that it is about", () => {
    const link = nodeLink("worker 1&x", { from: 1770000000, to: 1770003600 }, { ...EMPTY_VIEW, utc: true }, { container: "abc" });
    const read = new URLSearchParams(link.slice(link.indexOf("#") + 1));
    expect(link.startsWith("/node#")).toBe(true);
    expect(Object.fromEntries(read)).toEqual({ node: "worker 1&x", from: "2026-02-02T02:40:00Z", to: "2026-02-02T03:40:00Z", containers: "abc", tz: "utc" });
  });

  it("asks for a fixed span, a length, or what is usual", () => {
    expect(rangeParams({ from: 1, to: 2 })).toEqual({ from: "1.000", to: "2.000" });
    expect(rangeParams({ last: 3600 })).toEqual({ range: "1h" });
    expect(rangeParams(null)).toEqual({});
  });
});

describe("a cell", () => {
  it("is red from where it hurts, and only then", () => {
    const reddish = (value: number, dark: boolean): boolean => {
      const [red = 0, , blue = 0] = (colourOf(value, CPU, dark).match(/\d+/g) ?? []).map(Number);
      return red > blue;
    };
    for (const dark of [false, true]) {
      expect(reddish(0.89, dark)).toBe(false);
      expect(reddish(0.9, dark)).toBe(true);
      expect(reddish(5, dark)).toBe(true);
    }
    expect(isHarm(null, CPU)).toBe(false);
  });

  it("of a measure without harm is never red", () => {
    expect(legendSteps({ full: 1, harm: 2 })).toHaveLength(6);
    expect(legendSteps(CPU)).toHaveLength(9);
  });

  it("has its place by its time, whatever range is looked at", () => {
    const data = { cells: [0.1, null, 0.3, 0.4], start: 0, step: 60 };
    expect(placeCells(data, { from: 0, to: 240 }, 400).map((one) => [one.x, one.width])).toEqual([[0, 100], [100, 100], [200, 100], [300, 100]]);
    expect(placeCells(data, { from: 90, to: 150 }, 100)).toEqual([{ x: 0, width: 50, value: null }, { x: 50, width: 50, value: 0.3 }]);
    expect(placeCells(data, { from: 1000, to: 2000 }, 100)).toEqual([]);
  });

  it("is one piece with neighbours of its colour, unless it is wide enough to be counted", () => {
    const pieces = (width: number) => joinCells(placeCells({ cells: [0.1, 0.11, null, 0.11, 0.95, 0.95], start: 0, step: 60 }, { from: 0, to: 360 }, width), CPU, false, 1).map((one) => [one.x, one.width]);
    expect(pieces(24)).toEqual([[0, 8], [12, 4], [16, 8]]);
    expect(pieces(60)).toEqual([[0, 9], [10, 9], [30, 9], [40, 9], [50, 9]]);
  });

  it("is told under the cursor; what was not measured is not zero", () => {
    const row = { node: "n", cells: [0.5, null] } as unknown as WallNodeJson;
    const wall = { start: 0, step: 60, nodes: [row] } as unknown as WallJson;
    expect(readout(wall, row, CPU, 30, true)).toBe("00:00 n: 50 %");
    expect(readout(wall, row, CPU, 90, true)).toBe("00:01 n: not measured");
    expect(readout(wall, undefined, CPU, 90, true)).toBe("00:01");
  });
});

describe("the reason of a node", () => {
  it("fits one line: no hashes of pods, minutes only", () => {
    expect(briefWhy('2 OOM kills, the last of "cache-5ab43138c-8880a/cache" at 18:48:01 UTC.')).toBe("2 OOM kills, the last of cache at 18:48.");
    expect(briefWhy("Tasks waited for CPU 12 % of the time.")).toBe("Tasks waited for CPU 12 % of the time.");
  });
});

describe("the hatching of a strip", () => {
  const span = { from: 0, to: 600 };
  it("is left out only where every pixel has a value", () => {
    const covered = (cells: (number | null)[], start = 0) => isCovered(placeCells({ cells, start, step: 60 }, span, 100), 100);
    expect(covered(Array.from({ length: 10 }, () => 0))).toBe(true);
    expect(covered([...Array.from({ length: 9 }, () => 0.5), null])).toBe(false);
    expect(covered(Array.from({ length: 9 }, () => 0.5))).toBe(false);
    expect(covered(Array.from({ length: 10 }, () => 0.5), 120)).toBe(false);
    expect(covered([])).toBe(false);
  });
});

describe("a range that is being moved", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 7_200_000 }));
  afterEach(() => void vi.useRealTimers());

  /** Each answer has its nodes in the next of these orders. */
  function makeWall(...orders: string[]): ClusterModel {
    const source = {
      wall: () => {
        const nodes = [...(orders.shift() ?? "")].map((node) => ({ node }) as WallNodeJson);
        return Promise.resolve({ from: 0, to: 7200, asking: 0, live: false, nodes } as unknown as WallJson);
      },
    };
    return new ClusterModel(source as unknown as ClusterSource, new FakePage() as unknown as Window);
  }
  const told = (model: ClusterModel): string => model.nodes.map((row) => row.node).join("");

  it("leaves rows where they are until it rests, then the worst is first", async () => {
    const model = makeWall("abc", "cba", "bcda");
    model.start();
    await vi.advanceTimersByTimeAsync(0);
    expect([told(model), model.isTurning]).toEqual(["abc", false]);
    for (const shown of ["abc", "abcd"]) {
      model.zoomBy(0.75);
      await vi.advanceTimersByTimeAsync(300);
      expect([told(model), model.isTurning]).toEqual([shown, true]);
    }
    await vi.advanceTimersByTimeAsync(200);
    expect([told(model), model.isTurning]).toEqual(["bcda", false]);
  });

  it("is none where somebody chose another one", async () => {
    const model = makeWall("abc", "cba");
    model.start();
    await vi.advanceTimersByTimeAsync(0);
    model.goTo({ last: 3600 });
    await vi.advanceTimersByTimeAsync(0);
    expect([told(model), model.isTurning]).toEqual(["cba", false]);
  });
});
