import { describe, expect, it, vi } from "vitest";
import { cardsOf, concerns, keyOf, viewOf } from "../src/incidents";
import type { IncidentJson, IncidentsJson } from "../src/types";
import { makeModel, metric } from "./page";

const CHANGE = { workload: "cache", container: "cache-1/redis", metric: "memory_anon", unit: "bytes", before: 1, after: 2, from: 1000, to: 1600, lag_seconds: null, overlap: null };

function incident(weight: number, more: Partial<IncidentJson> = {}): IncidentJson {
  return {
    sentence: "It was killed.", kind: "oom_kill", node: "n", resource: "memory", causes: [CHANGE], victims: [], victims_count: 0, from: 1000, to: 1600, over: true, confidence: 0.9, weight,
    share: null, limit: null, limit_before: null, killed: 1600, kills: 1, image_before: "", image_after: "", new: false, notes: [], ...more,
  };
}

function answered(...incidents: IncidentJson[]): IncidentsJson {
  return { nodes: [{ sentence: "", node: "n", from: 0, to: 7200, history: 0, incidents, workloads: 1, containers: 1, asked: "", background: [], unseen: [] }] };
}

const METRICS = [metric("cpu"), metric("memory", { unit: "bytes" }), metric("pressure_memory", { unit: "ratio" })];

describe("incidents", () => {
  it("are five at the most, the weightiest first", () => {
    const cards = cardsOf(answered(...[1, 6, 2, 5, 3, 4].map((weight) => incident(weight))));
    expect(cards.map((card) => card.weight)).toEqual([6, 5, 4, 3, 2]);
  });

  it("set range, containers and the panels that show them", () => {
    const view = viewOf(incident(1), METRICS, { from: 0, to: 7200 }, false);
    expect(view.range).toEqual({ from: 700, to: 1900 });
    expect(view.containers).toEqual(["cache-1/redis"]);
    expect(view.panels?.map((panel) => panel.metric)).toEqual(["memory", "pressure_memory", "cpu"]);
    expect(view.node).toBeUndefined();
    expect(viewOf(incident(1), METRICS, { from: 0, to: 7200 }, true).node).toBe("n");
  });

  it("concern the workloads that they name", () => {
    expect(concerns(incident(1), new Set(["cache"]))).toBe(true);
    expect(concerns(incident(1), new Set(["api"]))).toBe(false);
  });

  it("an archive opens on the worst, unless somebody chose something", async () => {
    const found = incident(1);
    const [opened, chosen] = [makeModel(METRICS), makeModel(METRICS)];
    for (const { source } of [opened, chosen]) source.incidents = () => Promise.resolve(answered(found));
    chosen.page.location.hash = "#range=15m";
    for (const { model } of [opened, chosen]) {
      model.start();
      model.data.setWidth(900);
    }
    await vi.waitFor(() => {
      for (const { model } of [opened, chosen]) expect(model.data.incidents.value).not.toBeNull();
    }, 10_000);
    expect(opened.model.view).toMatchObject({ incident: keyOf(found), range: { from: 700, to: 1900 } });
    expect(chosen.model.view).toMatchObject({ incident: "", range: { last: 900 } });
  });
});
