/** One scale of space: a padding, margin or gap outside of it fails, with the rule it stands in. */

import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const SHEETS = ["src/style.css", "src/cluster/cluster.css"];
const DECLARED = /(?<![\w-])((?:padding|margin|gap|row-gap|column-gap)(?:-[a-z-]+)?):\s*([^;}]+)/g;
/** Nothing, what is left, a step of the scale, the border that plots begin behind; one pixel back puts a border over another. */
const ACCEPTED = /^(?:0|auto|var\(--space-[1-6]\)|var\(--edge\)|-1px)$/;

function outside(css: string): string[] {
  return [...css.matchAll(DECLARED)].filter(([, , value = ""]) => !value.trim().split(/\s+/).every((word) => ACCEPTED.test(word))).map(([whole]) => whole);
}

describe("the scale of space", () => {
  it.each(SHEETS)("is all that %s uses", (path) => {
    expect(outside(readFileSync(path, "utf8"))).toEqual([]);
  });

  it("has six steps, each larger", () => {
    const steps = [...readFileSync("src/style.css", "utf8").matchAll(/--space-\d: (\d+)px/g)].map(([, size]) => Number(size));
    expect(steps).toEqual([2, 4, 8, 12, 16, 24]);
  });

  it("refuses any other value", () => {
    expect(outside("a { padding: 0 5px; margin-left: 1rem; gap: var(--space-2) 8px; row-gap: var(--space-9); }")).toHaveLength(4);
    expect(outside("a { padding: 0 var(--space-2); margin: -1px auto 0; scroll-padding: 5px; }")).toEqual([]);
  });
});
