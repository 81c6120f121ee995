import { describe, expect, it } from "vitest";
import { parseDashboard, readDashboard } from "../src/dashboard";

const ORIGIN = "http://127.0.0.1:8050";
const BOARD = { schema_version: 1, name: "leaks in ${NAMESPACE}", containers: { namespace: "${NAMESPACE}" }, time_range: { range: "6h" }, panels: [{ metric: "memory", title: "all of it" }], study: "trend" };
const never = (): Promise<unknown> => Promise.reject(new Error("no request was expected"));

describe("dashboards", () => {
  it("inline, with variables from the address", async () => {
    const { name, change } = await readDashboard(JSON.stringify(BOARD), { namespace: "shop" }, ORIGIN, never);
    expect(name).toBe("leaks in shop");
    expect(change).toMatchObject({ namespace: "shop", range: { last: 21600 }, study: "trend", panels: [{ metric: "memory", scope: "", title: "all of it" }] });
  });

  it("from a path of this origin", async () => {
    const asked: string[] = [];
    const fetchJson = (url: string): Promise<unknown> => {
      asked.push(url);
      return Promise.resolve({ ...BOARD, name: "x", containers: {} });
    };
    await readDashboard("/boards/x.json", {}, ORIGIN, fetchJson);
    expect(asked).toEqual(["/boards/x.json"]);
  });

  it.each(["https://elsewhere.example/x.json", "//elsewhere.example/x.json", "data:application/json,{}"])("never from another origin: %s", async (url) => {
    await expect(readDashboard(url, {}, ORIGIN, never)).rejects.toThrow("not this page's origin");
  });

  it.each([
    [{ ...BOARD, schema_version: 2 }, "accepted: 1"],
    [{ ...BOARD, panels: [] }, "one to twelve"],
    [{ ...BOARD, panels: Array(13).fill({ metric: "cpu" }) }, "13 panels"],
    [{ ...BOARD, panles: [] }, 'no key "panles"'],
    [{ ...BOARD, time_range: { range: "soon" } }, "time_range"],
    [[], "not an object"],
  ])("refuses by name %#", (board, words) => expect(() => parseDashboard(board)).toThrow(words));

  it("a variable that was not given is named", async () => {
    await expect(readDashboard(JSON.stringify(BOARD), {}, ORIGIN, never)).rejects.toThrow("namespace=...");
  });
});
