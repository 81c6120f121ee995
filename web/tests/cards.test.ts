import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { joinCards, tellNow, viewOfFinding } from "../src/cards";
import { tellShort } from "../src/tiles";
import type { IncidentJson, NodeFindingJson, SummaryJson, TileJson, WrongJson } from "../src/types";
import { container, makeModel, metric } from "./page";

beforeEach(() => void vi.useFakeTimers({ now: 7_200_000 }));
afterEach(() => void vi.useRealTimers());

const METRICS = [metric("cpu"), metric("memory", { unit: "bytes" }), metric("pressure_memory", { unit: "ratio" })];
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(2000);

function finding(id: string, more: Partial<NodeFindingJson> = {}): NodeFindingJson {
  return {
    id, key: id, kind: "memory_leak", severity: "kill", state: "confirmed", node: "n", onset: 5000, born: 5100, updated: 5200, sentence: "It grows.", advice: "", confirmed: 5200, ended: null, namespace: "shop",
    workload: "catalog", pod: "", container: "", container_id: "", device: "", pod_uid: "", cause: "", victims: [], victims_count: 0, time_to_limit_seconds: 600, evidence: {}, times: 1, is_learned: false, feedback: "", silenced: "", revision: 1, ...more,
  };
}

function incident(workload: string, more: Partial<IncidentJson> = {}): IncidentJson {
  const change = { workload, container: `${workload}-1/it`, metric: "memory_anon", unit: "bytes", before: 1, after: 2, from: 5000, to: 5600, lag_seconds: null, overlap: null };
  return {
    sentence: "It was killed.", kind: "oom_kill", node: "n", resource: "memory", causes: [change], victims: [], victims_count: 0, from: 5000, to: 5600, over: true, confidence: 0.9, weight: 1,
    share: null, limit: null, limit_before: null, killed: 5600, kills: 1, image_before: "", image_after: "", new: false, notes: [], ...more,
  };
}

function ofNode(...incidents: IncidentJson[]) {
  return { sentence: "", node: "n", from: 3600, to: 7200, history: 0, incidents, workloads: 1, containers: 1, asked: "", background: [], unseen: [] };
}

function wrong(findings: NodeFindingJson[], ...incidents: IncidentJson[]): WrongJson {
  return { nodes: [{ node: "n", sentence: "", newest: 7200, watched: true, findings, incidents: [ofNode(...incidents)] }] };
}

/** A node whose tasks wait for CPU so much of the time. */
function summary(value: number): SummaryJson {
  const tile: TileJson = { id: "pressure", title: "pressure", value, of: 1, unit: "ratio", spark: [], sentence: "", resource: "cpu", whose: "", peak: null };
  return { tiles: [tile], restarts: 0, oom_kills: 0, at: 0, whose: null };
}

describe("cards", () => {
  it("have what is wrong now first, then incidents, then what is over; five at the most", () => {
    const told = [finding("over", { state: "resolved", ended: 6000, workload: "old" }), finding("hurt", { severity: "hurt", kind: "crash_loop", workload: "web" }), finding("kill")];
    const cards = joinCards({ nodes: [ofNode(incident("api"), incident("db", { weight: 2 }))] }, wrong(told));
    expect(cards.map((card) => card.finding?.id ?? card.incident?.causes[0]?.workload)).toEqual(["kill", "hurt", "db", "api", "over"]);
    expect(joinCards(null, wrong([1, 2, 3, 4, 5, 6].map((each) => finding(`f${each}`))))).toHaveLength(5);
  });

  it("tell the same thing once: a finding and its incident, and an incident of two answers", () => {
    const cards = joinCards({ nodes: [ofNode(incident("catalog", { from: 5060 }))] }, wrong([finding("leak")], incident("catalog")));
    expect(cards).toHaveLength(1);
    expect(cards[0]).toMatchObject({ key: "leak", incident: { from: 5000 } });
    const named = joinCards({ nodes: [ofNode(incident("shop/catalog"), incident("test/catalog"))] }, wrong([finding("leak")]));
    expect(named.map((card) => card.incident?.causes[0]?.workload)).toEqual(["shop/catalog", "test/catalog"]);
  });

  it("leave out what is only suspected, learned, or silenced", () => {
    const quiet = [finding("born", { state: "born", confirmed: null }), finding("learned", { severity: "curious" }), finding("silenced", { silenced: "s" }), finding("gone", { state: "resolved", confirmed: null, ended: 6000 })];
    expect(joinCards(null, wrong(quiet))).toEqual([]);
    expect(tellNow(wrong(quiet), "")).toBe("Nothing is wrong on n.");
  });

  it("say in one line how many things are wrong, or that nothing is", () => {
    expect(tellNow(wrong([]), ": no finding now")).toBe("Nothing is wrong on n: no finding now.");
    expect(tellNow(wrong([]), "", tellShort(summary(0.999)))).toBe("No container stands out on n, but tasks wait for CPU 99.9 % of the time.");
    expect(tellShort(summary(0.2))).toBe("");
    expect(tellShort(null)).toBe("");
    expect(tellNow(wrong([finding("b", { severity: "hurt", kind: "gpu_loss", workload: "", namespace: "", device: "GPU 0" }), finding("a")]), "")).toBe("2 things are wrong on n: shop/catalog grows towards its memory limit.");
    expect(tellNow(wrong([finding("a", { state: "resolved", ended: 6000 })]), "")).toBe("Nothing is wrong on n.");
    expect(tellNow(wrong([], incident("api", { kind: "throttled", over: false })), "")).toBe("The watcher found nothing on n; 1 incident is not over.");
    expect(tellNow({ nodes: [] }, "")).toBe("There are no samples to judge by yet.");
  });

  it("set range, containers and the panels that show a finding", () => {
    expect(viewOfFinding(finding("leak"), ["a"], METRICS, 7200, false)).toMatchObject({ range: { from: 4700, to: 7200 }, containers: ["a"], incident: "leak", panels: [{ metric: "memory" }, { metric: "pressure_memory" }, { metric: "cpu" }] });
    expect(viewOfFinding(finding("leak", { ended: 6000 }), [], METRICS, 7200, true)).toMatchObject({ range: { from: 4700, to: 6300 }, node: "n" });
  });

  it("open the containers of their workload", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    source.rows = [{ ...container("a", "a", 0, 1), workload: "catalog" }, container("b", "b", 0, 1)];
    model.start();
    await settled();
    model.openCard({ key: "leak", finding: finding("leak"), incident: null });
    expect(model.view).toMatchObject({ containers: ["a"], incident: "leak" });
    model.openCard({ key: "leak", finding: finding("leak"), incident: incident("catalog") });
    expect(model.view).toMatchObject({ containers: ["catalog-1/it"], incident: "leak" });
  });
});

describe("the stream of cards", () => {
  it("is opened once for a live node, after panels and lists, and stays while somebody zooms", async () => {
    const { model, source, page } = makeModel(METRICS, { live: true });
    const { summary } = source;
    let give: () => void = () => undefined;
    source.summary = () => new Promise((done) => (give = () => void summary().then(done)));
    model.start();
    await settled();
    page.lookAway();
    expect(source.cardListeners).toHaveLength(0);
    give();
    await settled();
    model.time.goTo({ from: 100, to: 200 });
    await settled();
    expect([source.cardListeners.length, source.cardsClosed]).toEqual([1, 0]);
  });

  it("is not opened for an archive", async () => {
    const { model, source } = makeModel(METRICS);
    model.start();
    await settled();
    expect(model.cards.isTold).toBe(false);
    expect(source.cardListeners).toHaveLength(0);
  });

  it("brings a finding, and its end, and is closed while nobody looks", async () => {
    const { model, source, page } = makeModel(METRICS, { live: true });
    const drawn = vi.fn();
    model.start();
    await settled();
    model.changed.on(drawn);
    source.cardListeners[0]?.cards(wrong([finding("leak")]));
    expect(drawn).toHaveBeenCalled();
    expect(model.cards.wrong?.nodes[0]?.findings).toHaveLength(1);
    page.seen = false;
    page.lookAway();
    expect(source.cardsClosed).toBe(1);
    expect(model.cards.wrong, "what was told stays").not.toBeNull();
    page.seen = true;
    page.lookAway();
    expect(source.cardListeners).toHaveLength(2);
  });

  it("that breaks keeps what was told, and is left to the browser", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    source.cardListeners[0]?.cards(wrong([finding("leak")]));
    source.cardListeners[0]?.lost(false);
    expect(model.cards.lostSince).toBeGreaterThan(0);
    expect(model.cards.wrong).not.toBeNull();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(source.cardListeners).toHaveLength(1);
    source.cardListeners[0]?.still();
    expect(model.cards.lostSince).toBe(0);
  });

  it("that is refused or falls silent is opened again, later each time", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    source.cardListeners[0]?.lost(true);
    await vi.advanceTimersByTimeAsync(5100);
    expect(source.cardListeners).toHaveLength(2);
    source.cardListeners[1]?.lost(true);
    await vi.advanceTimersByTimeAsync(5100);
    expect(source.cardListeners).toHaveLength(2);
    await vi.advanceTimersByTimeAsync(10_000);
    expect(source.cardListeners).toHaveLength(3);
    source.cardListeners[2]?.still();
    expect(model.cards.lostSince).toBe(0);
    await vi.advanceTimersByTimeAsync(122_000);
    expect(model.cards.lostSince).toBeGreaterThan(0);
    await vi.advanceTimersByTimeAsync(30_000);
    expect(source.cardListeners).toHaveLength(4);
  });

  it("of another node begins anew; what comes late of the one before is not taken", async () => {
    const { model, source } = makeModel(METRICS, { live: true, nodes: ["n", "m"] });
    model.start();
    await settled();
    source.cardListeners[0]?.cards(wrong([finding("leak")]));
    model.address.change({ node: "m" });
    await settled();
    expect(source.cardListeners).toHaveLength(2);
    source.cardListeners[0]?.cards(wrong([finding("leak")]));
    expect(model.cards.wrong).toBeNull();
  });
});
