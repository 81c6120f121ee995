import { describe, expect, it } from "vitest";
import { briefSpan, clamp, duration, parseLength, parseMoment, renderLength, renderMoment, renderSpan, resolve, shift, tick, zoom } from "../src/time";

describe("lengths", () => {
  it("reads what the API reads", () => {
    expect(parseLength("15m")).toBe(900);
    expect(parseLength("1.5h")).toBe(5400);
    for (const wrong of ["", "15", "m", "-5m", "0s", "15 minutes", "1y"]) expect(parseLength(wrong)).toBeNull();
  });

  it("writes the shortest exact form, and reads it back", () => {
    for (const seconds of [1, 59, 60, 90, 900, 3600, 5400, 86400, 604800, 777]) {
      expect(parseLength(renderLength(seconds))).toBe(seconds);
    }
    expect(renderLength(900)).toBe("15m");
  });
});

describe("moments", () => {
  it("takes ISO 8601 and epoch seconds, nothing else", () => {
    expect(parseMoment("2026-11-16T03:10:00Z")).toBe(1794798600);
    expect(parseMoment("1794798600.5")).toBe(1794798600.5);
    for (const wrong of ["", "yesterday", "03:10", "2026-99-99"]) expect(parseMoment(wrong)).toBeNull();
  });

  it("comes back to the millisecond", () => {
    for (const at of [1794798600, 1794798600.125, 0]) expect(parseMoment(renderMoment(at))).toBeCloseTo(at, 3);
    expect(renderMoment(1794798600)).toBe("2026-11-16T03:10:00Z");
  });

  it("names the day twice only where it differs", () => {
    expect(renderSpan({ from: 1794798600, to: 1794799500 }, true)).toBe("2026-11-16 03:10:00 - 03:25:00 UTC");
    expect(renderSpan({ from: 1794785000, to: 1794798600 }, true)).toBe("2026-11-15 23:23:20 - 2026-11-16 03:10:00 UTC");
  });

  it("ticks as exactly as their distance asks for", () => {
    const at = 1794798600;
    expect(tick(at, 300, true)).toBe("03:10");
    expect(tick(at, 10, true)).toBe("03:10:00");
    expect(tick(at + 0.25, 0.25, true)).toBe("03:10:00.250");
    expect(tick(1794787200, 3600, true)).toBe("11-16");
  });
});

describe("windows", () => {
  it("zooming keeps what is under the cursor", () => {
    const span = { from: 1000, to: 2000 };
    for (const at of [1000, 1250, 1999]) {
      const next = zoom(span, 0.5, at, 1e6);
      expect((at - next.from) / (next.to - next.from)).toBeCloseTo((at - span.from) / 1000, 9);
      expect(next.to - next.from).toBeCloseTo(500, 9);
    }
  });

  it("zooming ends at two seconds and at all there is", () => {
    expect(zoom({ from: 0, to: 3 }, 0.01, 1, 100).to - zoom({ from: 0, to: 3 }, 0.01, 1, 100).from).toBe(2);
    const wide = zoom({ from: 0, to: 90 }, 100, 45, 100);
    expect(wide.to - wide.from).toBe(100);
  });

  it("a window that left the data is brought back, as wide as it was", () => {
    const all = { from: 0, to: 1000 };
    for (const span of [{ from: 950, to: 1050 }, { from: -50, to: 50 }, { from: 2000, to: 2100 }]) {
      const back = clamp(span, all);
      expect(back.to - back.from).toBe(100);
      expect(back.from >= 0 && back.to <= 1000).toBe(true);
    }
    expect(clamp({ from: 100, to: 200 }, all)).toEqual({ from: 100, to: 200 });
  });

  it("resolves against the newest sample, not the clock", () => {
    expect(resolve({ last: 900 }, 0, 5000)).toEqual({ from: 4100, to: 5000 });
    expect(resolve({ all: true }, 10, 5000)).toEqual({ from: 10, to: 5000 });
    expect(shift({ from: 1, to: 2 }, 3)).toEqual({ from: 4, to: 5 });
  });

  it("lengths in words", () => {
    expect([0, 0.5, 5, 90, 5400, 200000].map(duration)).toEqual(["0 s", "500 ms", "5 s", "1.5 min", "1.5 h", "2.31 d"]);
  });
});

describe("a span where there is little room", () => {
  it("has the second day only where it differs, and seconds only of a few minutes", () => {
    const at = Date.parse("2026-02-02T01:00:00Z") / 1000;
    expect(briefSpan({ from: at, to: at + 3600 }, true)).toBe("02-02 01:00 - 02:00");
    expect(briefSpan({ from: at - 7200, to: at }, true)).toBe("02-01 23:00 - 02-02 01:00");
    expect(briefSpan({ from: at, to: at + 90 }, true)).toBe("02-02 01:00:00 - 01:01:30");
  });
});
