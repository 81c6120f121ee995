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

type Triple = [number, number, number];

const times = (rows: Triple[], [a, b, c]: Triple): Triple => rows.map(([x, y, z]) => x * a + y * b + z * c) as Triple;

/** What of linear light reaches eyes that lack a cone (Machado et al., 2009, severity 1). */
const EYES: Triple[][] = [
  [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
  [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
  [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
];

/** Oklab, in which equal steps look equal (Ottosson, 2020). */
function perceived(colour: string, eye: Triple[]): Triple {
  const light = [1, 3, 5].map((place) => {
    const value = parseInt(colour.slice(place, place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  }) as Triple;
  const seen = times(eye, light).map((value) => Math.min(1, Math.max(0, value))) as Triple;
  const cones = times([[0.4122214708, 0.5363325363, 0.0514459929], [0.2119034982, 0.6806995451, 0.1073969566], [0.0883024619, 0.2817188376, 0.6299787005]], seen).map(Math.cbrt) as Triple;
  return times([[0.2104542553, 0.793617785, -0.0040720468], [1.9779984951, -2.428592205, 0.4505937099], [0.0259040371, 0.7827717662, -0.808675766]], cones);
}

describe("colours", () => {
  it("no two are near each other, to normal or to colour-blind eyes", () => {
    for (const colours of [LIGHT, DARK]) {
      for (const eye of EYES) {
        const seen = colours.map((colour) => perceived(colour, eye));
        const far = seen.flatMap((one, place) => seen.slice(place + 1).map((other) => Math.hypot(...one.map((value, axis) => value - (other[axis] ?? 0)))));
        expect(Math.min(...far)).toBeGreaterThan(0.05);
      }
    }
  });

  it("each has a contrast of 4.5 on its ground", () => {
    for (const colour of LIGHT) expect(contrast(colour, "#fbfbfd"), colour).toBeGreaterThanOrEqual(4.5);
    for (const colour of DARK) expect(contrast(colour, "#0f1216"), colour).toBeGreaterThanOrEqual(4.5);
  });

  const named = (...names: string[]): { id: string; name: string }[] => names.map((name) => ({ id: name, name }));
  it("a container has one colour, whoever is drawn beside it and whatever was drawn before", () => {
    const [here, there] = [new Palette(), new Palette()];
    const eight = named(...Array.from({ length: 8 }, (_, index) => `x-${index}/c`));
    here.arrange(named("a/b", "c/d"));
    there.arrange(eight);
    there.arrange([...eight, ...named("c/d", "a/b")]);
    for (const key of ["a/b", "c/d"]) expect(there.ink(key).slot, key).toBe(here.ink(key).slot);
  });

  it("of one colour only one line has no dash, and the order of the drawn changes nothing", () => {
    const names = Array.from({ length: 24 }, (_, index) => `pod-${index}/c`);
    const inksOf = (drawn: string[]): string[] => {
      const palette = new Palette();
      palette.arrange(named(...drawn));
      return names.map((key) => `${palette.ink(key).slot} ${palette.ink(key).dash.join("-")}`);
    };
    const inks = inksOf(names);
    const whole = inks.filter((ink) => ink.endsWith(" "));
    expect(new Set(whole).size).toBe(whole.length);
    expect(whole.length).toBe(new Set(inks.map((ink) => ink.split(" ")[0])).size);
    expect(inksOf([...names].reverse())).toEqual(inks);
  });

  it("names spread over all colours", () => {
    const counts = new Array<number>(LIGHT.length).fill(0);
    const palette = new Palette();
    for (let index = 0; index < 1200; index += 1) {
      const { slot } = palette.ink(`pod-${index}/c`);
      counts[slot] = (counts[slot] ?? 0) + 1;
    }
    expect(Math.min(...counts)).toBeGreaterThan(60);
    expect(Math.max(...counts)).toBeLessThan(140);
  });
});
