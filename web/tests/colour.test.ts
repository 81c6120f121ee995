import { describe, expect, it } from "vitest";
import { DARK, LIGHT, Palette } from "../src/colour";

function luminance(colour: string): number {
  const channel = (place: number): number => {
    const value = parseInt(colour.slice(place, place + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

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
