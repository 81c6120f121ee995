import { describe, expect, it } from "vitest";
import { makeSizeRow } from "../src/sizes";
import type { SizeAdviceJson } from "../src/types";

const GIB = 2 ** 30;
const NOTHING = { cpu_request: null, cpu_limit: null, memory_request: null, memory_limit: null };
const NOW = { cpu_request: 4, cpu_limit: null, memory_request: 2 * GIB, memory_limit: 4 * GIB };

function advice(more: Partial<SizeAdviceJson> = {}): SizeAdviceJson {
  return {
    sentence: "", risk: "Risk: a load above that of the last 7 d.", state: "sized", namespace: "shop", workload: "web", kind: "Deployment", container: "app", replicas: 2,
    specified: true, now: NOW, cpu_request: 0.45, cpu_limit: null, memory_request: 3 * GIB, memory_limit: 4 * GIB, saved_cores: 7.1, saved_bytes: -2 * GIB, ready: 0, ...more,
  };
}

describe("a row of right-sizing", () => {
  it("has what is set and what is recommended, what is saved and what is needed", () => {
    const row = makeSizeRow(advice(), true);
    expect([row.workload, row.container, row.replicas]).toEqual(["shop/web", "app", "2 replicas"]);
    expect(row.cells).toEqual([
      { now: "4 cores", then: "0.45 cores" },
      { now: "none", then: "" },
      { now: "2 GiB", then: "3 GiB" },
      { now: "4 GiB", then: "4 GiB" },
    ]);
    expect([row.savedCores, row.savedMemory]).toEqual(["7.1 cores", "needs 2 GiB more"]);
    expect(row.note).toBe("Risk: a load above that of the last 7 d.");
  });

  it("tells a request that nobody set from one that was not read", () => {
    const none = makeSizeRow(advice({ now: NOTHING, saved_cores: null, saved_bytes: null }), true);
    expect([none.cells[0]?.now, none.savedCores]).toEqual(["none", "no request now"]);
    const unread = makeSizeRow(advice({ now: NOTHING, saved_cores: null, saved_bytes: null, specified: false }), true);
    expect(unread.cells.map((cell) => cell.now)).toEqual(["not known", "none", "not known", "none"]);
    expect(unread.savedMemory).toBe("request not known");
  });

  it("tells what was not measured from what saves nothing", () => {
    const row = makeSizeRow(advice({ cpu_request: null, saved_cores: null, saved_bytes: 0 }), true);
    expect([row.cells[0], row.savedCores, row.savedMemory]).toEqual([{ now: "4 cores", then: "" }, "not measured", "nothing"]);
  });

  it("recommends nothing before a day was seen, and says from when on", () => {
    const row = makeSizeRow(advice({ state: "not_yet", risk: "", saved_cores: null, saved_bytes: null, ready: 1_770_000_000 }), true);
    expect(row.cells.every((cell) => cell.then === "")).toBe(true);
    expect([row.savedCores, row.savedMemory, row.waits]).toEqual(["", "", true]);
    expect(row.note).toBe("not yet: less than a day was seen; from 2026-02-02 02:40:00 UTC on it can be said");
  });

  it("changes nothing that fits, though its figures differ a little", () => {
    const row = makeSizeRow(advice({ state: "fits", risk: "", saved_cores: 0.02 }), true);
    expect(row.cells.every((cell) => cell.then === "")).toBe(true);
    expect([row.savedCores, row.note, row.waits]).toEqual(["", "fits as it is", false]);
  });

  it("says why a size cannot be told", () => expect(makeSizeRow(advice({ state: "not_measured" }), true).note).toContain("neither CPU nor memory was measured"));

  it("of names made to harm is short and steers nothing", () => {
    const row = makeSizeRow(advice({ workload: `\u202e${"n".repeat(1000)}`, container: "a\u0007b", risk: "Risk: \u202ex" }), true);
    expect(row.workload.length).toBeLessThan(70);
    expect(`${row.workload}${row.container}${row.note}`).not.toMatch(/[\u0007\u202e]/);
  });
});
