import { describe, expect, it } from "vitest";
import { collect, effect, limitAt, matters, spanOf } from "../src/findings";
import { bunch } from "../src/lane";
import { describe as say, sentence } from "../src/sentence";
import type { EventJson, FindingJson, StudyJson, TimeseriesJson } from "../src/types";
import { answer } from "./answers";

const BASE: FindingJson = { kind: "changepoint", from: 100, to: 100, at: 100, confidence: 0.98, magnitude: 1, unit: "bytes", before: 2, after: 3, sentence: "It rose.", evidence: {} };
const LEAK: FindingJson = { ...BASE, kind: "trend", at: null, from: 0, to: 1000, before: 100, after: 200, slope_per_second: 0.1, limit: 250, time_to_limit_seconds: 500, sentence: "It leaks." };

function study(...findings: FindingJson[]): StudyJson {
  const series = { metric: "cpu", container: "a", node: null, id: "a" };
  return { study: "all", results: [{ study: "x", version: 1, series, from: 0, to: 1, samples: 1, missing_share: 0, status: "found", reason: null, sentence: "", findings }] };
}

describe("findings", () => {
  it("what reaches a limit comes first, what is tiny comes last", () => {
    const tiny = { ...BASE, before: 100, after: 101, confidence: 1 };
    const rows = collect(":cpu", study(tiny, BASE, LEAK), answer({ a: [1] }));
    expect(rows.map((row) => row.finding)).toEqual([LEAK, BASE, tiny]);
    expect(rows.map(matters)).toEqual([true, true, false]);
    expect(effect(BASE)).toBeCloseTo(1 / 3);
  });

  it("have keys that differ and that name their series", () => {
    const rows = collect(":cpu", study(BASE, { ...BASE, at: 200, from: 200 }), answer({ a: [1] }));
    expect(new Set(rows.map((row) => row.key)).size).toBe(2);
    expect(rows[0]?.key).toBe("cpu.a.x.100");
  });

  it("among cycles the server's order holds", () => {
    const often = { ...BASE, kind: "periodicity", at: null, sentence: "every 5 min", strength: 0.2, period_seconds: 300 };
    const seldom = { ...often, sentence: "every 60 min", strength: 0.9, period_seconds: 3600 };
    const rows = collect(":cpu", study(often, seldom), answer({ a: [1, 2] }));
    expect(rows.map((row) => row.finding.sentence)).toEqual(["every 5 min", "every 60 min"]);
  });

  it("a change is shown with room on both sides, a trend until its limit", () => {
    const all = { from: 0, to: 7200 };
    const span = spanOf({ ...BASE, at: 3600 }, all);
    expect(span.from).toBeLessThan(3600);
    expect(span.to).toBeGreaterThan(3600);
    expect(limitAt(LEAK)).toBe(1500);
    expect(spanOf(LEAK, all).to).toBeGreaterThan(1500);
  });

  it("the panel's sentence is the finding that matters, else what is drawn", () => {
    const drawn = answer({ a: [1, 2], b: [1, 1] });
    const telling = { shown: (): boolean => true, span: { from: 0, to: 1 }, utc: true, many: false };
    expect(sentence(drawn, collect(":cpu", study(LEAK), drawn), telling)).toBe("a: It leaks.");
    expect(sentence(drawn, [], telling)).toBe("At 00:00 a leads with 2 cores; the 2 drawn together 3 cores; peak 2 cores, a, at 00:00:01 UTC.");
    expect(say(answer({ a: [0, 0], b: [0, 0] }, "ratio"), telling)).toBe("All 2 at 0 % in the whole range.");
    expect(say(answer({ a: [null] }), telling)).toBe("Nothing was measured in this range.");
  });

  it("a trend that ended with its container is not told as if it went on", () => {
    const drawn = answer({ a: [1, 2] });
    const told = (to: number): string => sentence(drawn, collect(":cpu", study(LEAK), drawn), { shown: () => true, span: { from: 0, to }, utc: true, many: false });
    expect([told(1000), told(1050), told(3600)]).toEqual(["a: It leaks.", "a: It leaks.", "a until 00:16: It leaks."]);
  });

  it("files that cannot be read are not called a range without samples", () => {
    const telling = { shown: (): boolean => true, span: { from: 0, to: 1 }, utc: true, many: false };
    expect(say({ ...answer({}), refused: ["a: damaged"] }, telling)).toBe("Nothing of this range can be read: a file is damaged.");
    expect(say({ ...answer({ a: [null] }), refused: ["a: damaged", "b: damaged"] }, telling)).toBe("Nothing of this range can be read: 2 files are damaged.");
  });

  it("a filter that admits nobody is not taken for a range without samples", () => {
    const telling = { shown: (): boolean => true, span: { from: 0, to: 1 }, utc: true, many: false, filtered: true };
    expect(say(answer({}), telling)).toBe("No container of this filter is in this range.");
    expect(say(answer({ a: [null] }), telling)).toBe("Nothing was measured in this range.");
  });

  it("what a service inside another one uses is added once", () => {
    const telling = { shown: (): boolean => true, span: { from: 0, to: 1 }, utc: true, many: false };
    const services = (columns: Record<string, number[]>): TimeseriesJson => {
      const drawn = answer(columns, "bytes");
      return { ...drawn, series: drawn.series.map((series) => ({ ...series, id: `service:${series.name}` })) };
    };
    const nested = { "/s/docker": [500, 500], "/s/docker/build": [400, 400] };
    expect(say(services({ ...nested, "/s/docker-proxy": [100, 100] }), telling)).toContain("the 3 drawn together 600 B");
    expect(say(services(nested), telling)).not.toContain("together");
    expect(say(answer({ "/s/a": [500, 500], "/s/a/b": [400, 400] }, "bytes"), telling)).toContain("the 2 drawn together 900 B");
  });

  it("a share says of what, and one near its limit says so", () => {
    const telling = { shown: (): boolean => true, span: { from: 0, to: 1 }, utc: true, many: false };
    const throttled = { ...answer({ encoder: [0.4, 0.44] }, "ratio"), metric: "cpu_throttled" };
    expect(say(throttled, telling)).toContain("At 00:00 encoder is throttled in 44 % of its periods; peak 44 %");
    const waits = { ...answer({ api: [0.1, 0.12] }, "ratio"), metric: "pressure_io" };
    expect(say(waits, telling)).toContain("api waits for I/O 12 % of the time");
    const near = answer({ files: [480, 488] }, "bytes");
    const limited = { ...near, series: near.series.map((series) => ({ ...series, limit: 500 })) };
    expect(say(limited, telling)).toContain("files is at 488 B (97.6 % of its limit)");
    expect(say({ ...limited, series: limited.series.map((series) => ({ ...series, limit: 1000 })) }, telling)).not.toContain("limit");
  });

  it("a finding about a time that is not shown is not the sentence", () => {
    const drawn = answer({ a: [1, 2], b: [1, 1] });
    const telling = { shown: (): boolean => true, span: { from: 5000, to: 5100 }, utc: true, many: false };
    expect(sentence(drawn, collect(":cpu", study(LEAK), drawn), telling)).not.toContain("It leaks");
  });
});

describe("the event lane", () => {
  const event = (at: number, kind: EventJson["kind"]): EventJson => ({ at, kind, container: "x", name: "x", node: "n", sentence: "" });

  it("bunches what cannot be told apart, the worst first", () => {
    const rows = bunch([event(10, "exit"), event(11, "oom"), event(500, "start"), event(2000, "start")], { from: 0, to: 1000 });
    expect(rows.map((row) => row.events.map((one) => one.kind))).toEqual([["oom", "exit"], ["start"]]);
  });

  const named = (at: number, kind: EventJson["kind"]) => ({ ...event(at, kind), name: "payment" });

  it("a name that would run into another mark is left out, or stands at its other side", () => {
    const rows = bunch([named(480, "restart"), named(500, "restart"), named(520, "restart"), named(700, "exit")], { from: 0, to: 1000 });
    expect(rows.map((row) => [row.named, row.left])).toEqual([[true, true], [false, false], [true, false], [true, false]]);
  });

  it("an OOM kill is always named, and counts what its name would cover", () => {
    const rows = bunch([named(480, "restart"), named(500, "oom"), named(520, "restart"), named(700, "exit")], { from: 0, to: 1000 });
    expect(rows.map((row) => row.events.map((one) => one.kind))).toEqual([["restart"], ["oom", "restart"], ["exit"]]);
    expect(rows.map((row) => row.named)).toEqual([true, true, true]);
  });
});
