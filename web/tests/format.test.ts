import { describe, expect, it } from "vitest";
import { axisFigures, axisSteps, brief, confidence, figure, plain, quantity, shorten, spoken } from "../src/format";

describe("quantities", () => {
  it.each([
    [1.9 * 2 ** 30, "bytes", "1.9 GiB"],
    [536870912, "bytes", "512 MiB"],
    [1023.9, "bytes", "1 KiB"],
    [0, "bytes", "0 B"],
    [-2048, "bytes", "-2 KiB"],
    [38 * 2 ** 20, "bytes/s", "38 MiB/s"],
    [0.42, "cores", "0.42 cores"],
    [0.0417, "ratio", "4.17 %"],
    [1, "ratio", "100 %"],
    [0.0123, "seconds", "12.3 ms"],
    [12345, "count", "12.3 k"],
    [61.5, "celsius", "61.5 °C"],
  ])("%d %s is %s", (value, unit, words) => expect(quantity(value, unit)).toBe(words));

  it("missing is not zero", () => {
    expect(quantity(null, "bytes")).toBe("not measured");
    expect(quantity(NaN, "bytes")).toBe("not measured");
    expect(quantity(Infinity, "bytes")).toBe("unlimited");
    expect(quantity(0, "cores")).toBe("0 cores");
  });

  it("has no exponent and no trailing zeros", () => {
    for (const value of [1e-7, 0.00012345, 0.1, 1, 9.999, 99.99, 999.9, 12345.678, 1e9]) expect(figure(value)).not.toMatch(/e|\.0+$/);
  });

  it("ticks repeat only units that scale", () => {
    expect(axisFigures([0.5], "cores")).toEqual(["0.5"]);
    expect(axisFigures([0.8], "seconds/s")).toEqual(["0.8"]);
    expect(axisFigures([2 ** 29], "bytes")).toEqual(["512 MiB"]);
    const near = [21.2, 21.21, 21.22].map((value) => value * 2 ** 30);
    expect(axisFigures(near, "bytes")).toEqual(["21.2 GiB", "21.21 GiB", "21.22 GiB"]);
  });

  it("bytes tick in powers of two", () => {
    expect(axisSteps("bytes").every((step) => Number.isInteger(Math.log2(step)))).toBe(true);
    expect(axisSteps("ratio")).toContain(0.05);
  });
});

describe("words", () => {
  it("confidence never rounds up to certainty", () => {
    expect(confidence(0.9996)).toBe("certain, 99.9 %");
    expect(confidence(0.9896)).toBe("very likely, 98 %");
    expect(confidence(0.2)).toBe("weak, 20 %");
  });

  it("cuts names in a sentence and leaves its other words", () => {
    const said = spoken(`api waits for ${"n".repeat(1024)}\u202e since 10:00`);
    expect(said.startsWith("api waits for nnn")).toBe(true);
    expect(said.endsWith(" since 10:00")).toBe(true);
    expect(said.length).toBeLessThan(130);
    expect(said).not.toContain("\u202e");
  });

  it("a long name is cut in the middle, by whole characters", () => {
    expect(shorten("abc", 3)).toBe("abc");
    const cut = shorten("😀".repeat(600), 40);
    expect([...cut]).toHaveLength(40);
    expect(cut).not.toContain("\ufffd");
  });

  it("a name cannot steer its neighbours", () => {
    expect(plain("pod\u202egnp.exe\u0000\u200f")).toBe("pod\ufffdgnp.exe\ufffd\ufffd");
    expect(plain("<script>alert(1)</script>")).toBe("<script>alert(1)</script>");
  });

  it("brief drops what a ReplicaSet added, and nothing else", () => {
    expect(brief("api-5ab43138c-8880a/api")).toBe("api");
    expect(brief("cache-8c225c3ae-a678d/redis")).toBe("cache/redis");
    expect(brief("db-0/postgres")).toBe("db-0/postgres");
    expect(brief("alone")).toBe("alone");
  });
});
