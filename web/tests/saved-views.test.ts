import { describe, expect, it } from "vitest";
import { parseViews, readViews, renderViews, withView, writeViews } from "../src/saved-views";

class Store {
  kept = new Map<string, string>();
  getItem = (key: string) => this.kept.get(key) ?? null;
  setItem = (key: string, value: string): void => void this.kept.set(key, value);
}

describe("saved views", () => {
  it("come back as they were saved, one for each name", () => {
    const store = new Store();
    const views = withView(withView([], { name: "leaks", view: "panels=memory" }), { name: "leaks", view: "panels=memory&range=6h" });
    writeViews(store, views);
    expect(readViews(store)).toEqual([{ name: "leaks", view: "range=6h&panels=memory" }]);
  });

  it("are refused with what is expected", () => {
    expect(() => parseViews("no")).toThrow("not JSON");
    expect(() => parseViews("[]")).toThrow('"schema_version": 1');
    expect(() => parseViews(JSON.stringify({ schema_version: 1, views: [{ name: "", view: "" }] }))).toThrow("no name");
  });

  it("have nothing in them that an address would not accept", () => {
    const text = renderViews([{ name: "x", view: "panels=cpu&theme=pink&javascript=1" }]);
    expect(parseViews(text)).toEqual([{ name: "x", view: "panels=cpu" }]);
  });

  it("are told apart from a browser that keeps nothing", () => {
    expect(readViews(null)).toEqual([]);
    expect(() => writeViews(null, [])).toThrow("keeps nothing");
  });
});
