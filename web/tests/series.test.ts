import { describe, expect, it } from "vitest";
import { append, axisRange, bounds, hasValues, nearest, newestReadings, oneEach, places, readings, takeOver } from "../src/series";
import { answer } from "./answers";

describe("places", () => {
  it("nearest is nearest", () => {
    const time = [0, 10, 20];
    expect([-5, 0, 4, 6, 19, 99].map((at) => nearest(time, at))).toEqual([0, 0, 0, 1, 2, 2]);
    expect(nearest([], 1)).toBe(-1);
  });

  it("a window takes one more on each side", () => expect(places([0, 1, 2, 3, 4], { from: 1.5, to: 2.5 })).toEqual([1, 3]));
});

describe("the axis", () => {
  it("counts only what is seen", () => {
    const one = answer({ a: [1, 2, 3, 100], b: [5, 5, 5, 5] });
    expect(bounds(one, (series) => series.id === "a", { from: 0, to: 2 })).toEqual({ low: 1, high: 100 });
    expect(bounds(one, () => false, { from: 0, to: 3 })).toBeNull();
  });

  it("gaps and infinities do not stretch it", () => {
    expect(bounds(answer({ a: [null, 2, Infinity, null] }), () => true, { from: 0, to: 3 })).toEqual({ low: 2, high: 2 });
  });

  it("starts at zero, unless the data live far above it", () => {
    expect(axisRange({ low: 1, high: 3 }, null)[0]).toBe(0);
    expect(axisRange({ low: 1000, high: 1010 }, null)[0]).toBeGreaterThan(900);
    expect(axisRange({ low: 0, high: 0 }, null)).toEqual([0, 1]);
    expect(axisRange({ low: 0, high: 1 }, 4)[1]).toBeGreaterThan(4);
    expect(axisRange(null, null)).toEqual([0, 1]);
  });
});

describe("the legend", () => {
  it("is sorted by the value under the cursor, the missing last", () => {
    const one = answer({ a: [1, 9], b: [5, null], c: [3, 4] });
    expect(readings(one, 0).map((row) => row.series.id)).toEqual(["b", "c", "a"]);
    expect(readings(one, 1).map((row) => row.series.id)).toEqual(["a", "c", "b"]);
    expect(readings(one, 1)[2]?.value).toBeNull();
  });

  it("without a cursor says the newest of each", () => {
    expect(newestReadings(answer({ a: [1, 9], b: [5, null] }), { from: 0, to: 1 }).map((row) => row.value)).toEqual([9, 5]);
  });
});

describe("the live tail", () => {
  it("appends in place; null is a gap, and who is not named has nothing new", () => {
    const one = answer({ a: [1, 1], b: [2, 2], c: [3, 3] });
    expect(append(one, 2, { a: 7, b: null }, 0)).toBe(true);
    expect(one.series.map((series) => series.mean[2])).toEqual([7, null, undefined]);
    expect(newestReadings(one, { from: 0, to: 2 }).map((row) => row.value)).toEqual([7, 3, 2]);
  });

  it("a tick that is there already is not there twice", () => {
    const one = answer({ a: [1, 1] });
    expect(append(one, 1, { a: 7 }, 0)).toBe(false);
    expect(one.time).toHaveLength(2);
  });

  it("keeps what was told while a newer answer was on its way", () => {
    const before = answer({ a: [1, 1], b: [2, 2] });
    for (const at of [2, 3, 4]) append(before, at, at === 3 ? { a: 7, b: null } : { a: at }, 0);
    const newer = answer({ a: [1, 1, 2], c: [5, 5, 5] });
    takeOver(newer, before);
    expect(newer.time).toEqual([0, 1, 2, 3, 4]);
    expect(newer.series.map((series) => series.mean)).toEqual([[1, 1, 2, 7, 4], [5, 5, 5, undefined, undefined]]);
    expect(newer.to).toBe(4);
  });

  it("stays as long as its window for ever", () => {
    const one = answer({ a: [1] });
    for (let at = 1; at < 5000; at += 1) append(one, at, { a: at }, at - 100);
    expect(one.time.length).toBeLessThan(130);
    expect(one.series[0]?.mean.length).toBe(one.time.length);
    expect(one.time[0]).toBeLessThanOrEqual(4899);
    expect(hasValues(one)).toBe(true);
  });
});

describe("lives of one container", () => {
  it("are one row of the legend: the one that has a value", () => {
    const one = answer({ a: [1, 2, null], b: [null, null, 5], c: [9, 9, 9] });
    for (const series of one.series) if (series.id !== "c") series.name = "pod/x";
    const names = (place: number): string[] => oneEach(readings(one, place), (series) => series.name).map((row) => row.series.id);
    expect(names(0)).toEqual(["c", "a"]);
    expect(names(2)).toEqual(["c", "b"]);
    expect(oneEach(newestReadings(one, { from: 0, to: 2 }), (series) => series.name).map((row) => row.value)).toEqual([9, 5]);
  });
});
