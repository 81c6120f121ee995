import { describe, expect, it } from "vitest";
import { contrast, DARK, LIGHT, Palette } from "../src/colour";

describe("colours", () => {
  it("each has a contrast of 4.5 on its ground", () => {
    for (const colour of LIGHT) expect(contrast(colour, "#fbfbfd"), colour).toBeGreaterThanOrEqual(4.5);
    for (const colour of DARK) expect(contrast(colour, "#0f1216"), colour).toBeGreaterThanOrEqual(4.5);
  });

  it("the first eight differ, the ninth comes with dashes", () => {
    const palette = new Palette();
    const inks = Array.from({ length: 9 }, (_, index) => palette.ink(`pod-${index}/c`));
    expect(new Set(inks.slice(0, 8).map((ink) => ink.slot)).size).toBe(8);
    expect(inks.slice(0, 8).every((ink) => ink.dash.length === 0)).toBe(true);
    expect(inks[8]?.dash.length).toBeGreaterThan(0);
  });

  it("the same container keeps its colour, also in the next visit", () => {
    const palette = new Palette();
    const first = palette.ink("a/b");
    for (let index = 0; index < 30; index += 1) palette.ink(`x-${index}`);
    expect(palette.ink("a/b")).toEqual(first);
    expect(new Palette(palette.entries()).ink("a/b")).toEqual(first);
  });

  it("a broken memory is not believed", () => {
    expect(() => new Palette([["a", -1], ["b", 1.5]]).ink("a")).not.toThrow();
  });
});
