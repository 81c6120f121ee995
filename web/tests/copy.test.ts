import { describe, expect, it } from "vitest";
import { alertRule, curl, duckdb, promql, python } from "../src/copy";
import { csv, csvCell, fileName } from "../src/export";
import { sparkPath } from "../src/spark";
import { answer } from "./answers";

const ASKED = {
  metric: "cpu", scope: "", span: { from: 1794798600, to: 1794799500 }, origin: "http://127.0.0.1:8050",
  containers: [{ id: "8daf00040d5776b7", lives: ["8daf00040d5776b7"], pod: "api-1", container: "it's", namespace: "shop" }],
};

describe("copy as", () => {
  it("PromQL rates a counter, and knows what it does not know", () => {
    expect(promql(ASKED)).toBe('rate(container_cpu_usage_seconds_total{pod=~"api-1", container=~"it\'s"}[1m])');
    expect(promql({ ...ASKED, metric: "memory", containers: [] })).toBe("container_memory_usage_bytes");
    expect(promql({ ...ASKED, metric: "cgroup.v2.cpu.max.quota" })).toBeNull();
  });

  it("quotes for the shell, for SQL and for a pattern", () => {
    const hostile = { ...ASKED, containers: [{ id: "x' OR '1", lives: ["x' OR '1"], pod: 'a".*', container: "", namespace: "" }] };
    expect(curl({ ...hostile, origin: "http://h'; rm" })).toContain("h'\\''; rm");
    expect(duckdb(hostile)).toContain("'x'' OR ''1'");
    expect(promql(hostile)).toBe('rate(container_cpu_usage_seconds_total{pod=~"a\\"\\\\.\\\\*"}[1m])');
  });

  it("asks the API the same question", () => {
    expect(curl(ASKED)).toBe("curl -sS 'http://127.0.0.1:8050/api/timeseries?metric=cpu&containers=8daf00040d57&from=2026-11-16T03%3A10%3A00Z&to=2026-11-16T03%3A25%3A00Z'");
    expect(python(ASKED)).toContain('url = "http://127.0.0.1:8050/api/timeseries?');
  });
});

describe("CSV", () => {
  it("an empty cell is not measured; a formula is text", () => {
    const one = answer({ "=cmd()": [1, null] });
    const rows = csv(one, () => true, { from: 0, to: 1 }).split("\r\n");
    expect(rows[1]).toBe("1970-01-01T00:00:00Z,cpu,cores,'=cmd(),'=cmd(),1,1,1");
    expect(rows[2]?.endsWith(",,,")).toBe(true);
    expect(csvCell('a "b", c')).toBe('"a ""b"", c"');
  });

  it("a file name has no path in it", () => expect(fileName("../../etc", "a/b", { from: 0, to: 1 }, "csv")).not.toMatch(/\/|:/));
});

describe("sparks", () => {
  it("a gap lifts the pen", () => expect(sparkPath([1, 2, null, 3, 4], 40, 10).match(/M/g)).toHaveLength(2));
  it("one value is no curve", () => expect(sparkPath([1, null], 40, 10)).toBe(""));
});

describe("a threshold as an alert", () => {
  const containers = [{ id: "a", lives: ["a"], pod: "web-1", container: "web", namespace: "shop" }];

  it("is a rule that Prometheus reads", () => {
    const rule = alertRule({ metric: "memory", scope: "", containers, span: { from: 0, to: 1 }, origin: "" }, 5e8, "bytes");
    expect(rule).toContain("- alert: MemoryAbove");
    expect(rule).toContain(`expr: 'container_memory_usage_bytes{pod=~"web-1", container=~"web"} > 500000000'`);
    expect(rule).toContain("for: 5m");
  });

  it("is nothing where the metric is not on /metrics", () => {
    expect(alertRule({ metric: "cpu.user", scope: "cpu", containers: [], span: { from: 0, to: 1 }, origin: "" }, 1, "s")).toBeNull();
  });
});
