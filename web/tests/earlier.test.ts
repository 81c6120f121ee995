import { describe, expect, it } from "vitest";
import { difference, seriesBefore, valueBefore } from "../src/earlier";
import { answer } from "./answers";

describe("earlier", () => {
  const now = answer({ a: [5, 6, 7], b: [1, 1, 1] });
  const before = { answer: answer({ a: [1, 2, null] }), seconds: 100 };
  const [a, b] = now.series;

  it("is the same container, so many seconds before", () => {
    if (!a || !b) throw new Error("two series");
    expect(seriesBefore(before, a)?.mean).toEqual([1, 2, null]);
    expect(valueBefore(before, a, 101)).toBe(2);
    expect(valueBefore(before, a, 102)).toBeNull();
    expect(valueBefore(before, b, 101)).toBeNull();
    expect(valueBefore(before, a, 150)).toBeNull();
  });

  it("is told as a difference", () => {
    expect(difference(6, 2)).toBe("+200 %");
    expect(difference(1, 2)).toBe("-50 %");
    expect(difference(2, 2)).toBe("±0 %");
    expect(difference(50, 1)).toBe("× 50");
    expect(difference(1, 0)).toBe("was 0");
    expect(difference(null, 2)).toBe("");
    expect(difference(2, null)).toBe("");
  });
});
