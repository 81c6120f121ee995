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

  const named = (...names: string[]): { id: string; name: string }[] => names.map((name) => ({ id: name, name }));
  const store = (): { getItem: () => string | null; setItem: (key: string, value: string) => void } => {
    let kept: string | null = null;
    return { getItem: () => kept, setItem: (_, value) => void (kept = value) };
  };

  it("eight that are drawn together have eight colours, and the ninth is dashed", () => {
    const palette = new Palette();
    const drawn = named(...Array.from({ length: 9 }, (_, index) => `pod-${index}/c`));
    palette.arrange(drawn);
    const inks = drawn.map((one) => palette.inkOf(one));
    expect(new Set(inks.slice(0, 8).map((ink) => ink.slot)).size).toBe(8);
    expect(inks.slice(0, 8).every((ink) => ink.dash.length === 0)).toBe(true);
    expect(inks[8]?.dash.length).toBeGreaterThan(0);
  });

  it("a container has one colour in two tabs, whatever each of them drew before", () => {
    const shared = store();
    const [here, there] = [new Palette(shared), new Palette(shared)];
    here.arrange(named("a/b", "c/d"));
    there.arrange(named(...Array.from({ length: 8 }, (_, index) => `x-${index}/c`)));
    there.arrange(named("x-0/c", "x-1/c", "x-2/c", "c/d", "a/b"));
    expect([there.ink("a/b").slot, there.ink("c/d").slot]).toEqual([here.ink("a/b").slot, here.ink("c/d").slot]);
  });

  it("a broken memory is not believed", () => {
    const palette = new Palette({ getItem: () => '[["a", -1], ["b", 99]]', setItem: () => undefined });
    palette.arrange(named("a", "b"));
    expect(LIGHT[palette.ink("a").slot]).toBeDefined();
    expect(() => new Palette({ getItem: () => "{", setItem: () => undefined }).arrange(named("a"))).not.toThrow();
  });
});
