import { describe, expect, it } from "vitest";
import { decode, EMPTY, encode, type View } from "../src/view";

const FULL: View = {
  range: { from: 1794798600.25, to: 1794799500 },
  panels: [{ metric: "cpu", scope: "", title: "" }, { metric: "gpu.utilization", scope: "gpu", title: "GPU, busy ~ or not" }],
  containers: ["8daf00040d57", "1e3ac6183392"],
  hidden: ["5e217139b9d4"],
  only: "8daf00040d57",
  compare: 86400,
  by: "workload",
  why: { from: 1794798700, to: 1794798800.5 },
  who: "8daf00040d57",
  thresholds: { ":cpu": 0.8, "gpu:gpu.utilization": 90 },
  incident: "oom_kill.cache.1794793875",
  sort: "memory",
  grouped: true,
  search: "api & <b>",
  namespace: "shop",
  qos: "Burstable",
  labels: "app:web",
  node: "worker-1",
  focus: 1,
  drawer: "findings",
  sheet: "rightsize",
  study: "trend",
  finding: "memory.1e3ac6183392.trend.1794793875",
  theme: "dark",
  utc: true,
};

describe("the URL is the state", () => {
  it("comes back whole", () => {
    expect(decode(`#${encode(FULL)}`).view).toEqual(FULL);
  });

  it("what nobody chose is not in it", () => {
    expect(encode(EMPTY)).toBe("");
    expect(decode("").view).toEqual(EMPTY);
  });

  it.each([{ last: 900 }, { all: true } as const, { from: 1, to: 2 }])("keeps the range %o", (range) => {
    expect(decode(encode({ ...EMPTY, range })).view.range).toEqual(range);
  });

  it("is not broken by a hand-written one", () => {
    const { view, rest } = decode("#range=soon&from=x&to=y&focus=99&theme=pink&panels=a,b,c,d,e,f,g,h,i,j,k,l,m&drawer=all&sheet=all&pod=web&%E0%A4%A");
    expect(view.range).toBeNull();
    expect(view.focus).toBe(11);
    expect(view.theme).toBe("system");
    expect(view.drawer).toBe("");
    expect(view.sheet).toBe("");
    expect(view.panels).toHaveLength(12);
    expect(rest["pod"]).toBe("web");
  });

  it("an end before its start is no range", () => {
    expect(decode("#from=200&to=100").view.range).toBeNull();
  });

  it("a metric that is named twice is one panel", () => {
    expect(decode("#panels=cpu,memory,cpu").view.panels?.map((panel) => panel.metric)).toEqual(["cpu", "memory"]);
  });

  it("a range that is none is refused by name", () => {
    expect(decode("#range=99y").refused).toContain("range=99y is not a range");
    expect(decode("#from=yesterday&to=now").refused).toContain("from=yesterday");
    expect(decode("#range=15m").refused).toBe("");
    expect(decode("").refused).toBe("");
  });
});
