import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { Failure } from "../src/api";
import { isOf } from "../src/series";
import { container, makeModel, metric } from "./page";

beforeEach(() => void vi.useFakeTimers({ now: 7_200_000 }));
afterEach(() => void vi.useRealTimers());

const METRICS = [metric("cpu"), metric("memory"), metric("pressure_memory"), metric("pressure_cpu"), metric("threads"), metric("cpu.load_1m", { scope: "node", plain: false })];
const settled = (): Promise<unknown> => vi.advanceTimersByTimeAsync(2000);

describe("the first view", () => {
  it("requests the first panel alone, then the rest", async () => {
    const { model, source } = makeModel(METRICS);
    model.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(source.requested.slice(0, 5)).toEqual(["instance", "metrics", "studies", "filters", "timeseries cpu"]);
    await settled();
    expect(model.panels.list.map((panel) => panel.choice.metric)).toEqual(["cpu", "memory", "pressure_cpu"]);
    expect(source.requested.filter((name) => name.startsWith("timeseries"))).toEqual(["cpu", "memory", "pressure_cpu", "cpu"].map((name) => `timeseries ${name}`));
  });

  it("shows of a node without containers what was measured: CPU time, else its load", async () => {
    const load = metric("cpu.load_1m", { scope: "node", plain: false });
    for (const [metrics, choice] of [
      [[load, metric("cpu.user", { scope: "cpu", plain: false })], { metric: "cpu", scope: "node" }],
      [[load], { metric: "cpu.load_1m", scope: "node" }],
    ] as const) {
      const { model } = makeModel([...metrics]);
      model.start();
      await settled();
      expect(model.panels.list[0]?.choice).toMatchObject(choice);
    }
  });

  it("sorts by what the server lists first, and offers its order", async () => {
    const { model, source } = makeModel([metric("memory"), metric("cpu"), metric("gpu_power", { scope: "gpu" })]);
    model.start();
    await settled();
    expect(source.requested).toContain("containers by memory");
    expect(model.panels.sorts).toEqual(["memory", "cpu"]);
  });
});

describe("a viewer that has rested", () => {
  it("is said to be starting while its first answer is waited for", async () => {
    const { model, source } = makeModel(METRICS);
    source.starting = true;
    source.instance = () => new Promise(() => undefined);
    model.start();
    await settled();
    expect(model.data.starting).toBe(true);
  });

  it("is not, where nobody says whether it is", async () => {
    const { model, source } = makeModel(METRICS);
    source.isStarting = () => Promise.reject(new Failure("no", "", "", true));
    model.start();
    await settled();
    expect(model.data.starting).toBe(false);
  });
});

describe("the address", () => {
  it("gets a step for a change, and none where nothing changed", () => {
    const { model, page } = makeModel(METRICS);
    model.time.goTo({ last: 300 });
    model.time.goTo({ last: 300 });
    model.address.change({ utc: true }, false);
    expect(page.addresses).toEqual(["#range=5m&tz=utc"]);
  });

  it("another node is opened", async () => {
    const { model, source } = makeModel(METRICS);
    model.start();
    await settled();
    source.requested.length = 0;
    model.address.change({ node: "m" });
    await settled();
    expect(source.requested).toContain("instance");
  });
});

describe("the window", () => {
  it("is drawn while it is dragged, and requested once it rests", async () => {
    const { model, page } = makeModel(METRICS);
    model.start();
    await settled();
    const moved = vi.fn();
    model.time.moved.on(moved);
    model.time.panBy(-0.1);
    model.time.panBy(-0.1);
    expect(moved).toHaveBeenLastCalledWith({ from: 2880, to: 6480 });
    expect(page.addresses).toEqual([]);
    await settled();
    expect(page.addresses).toHaveLength(1);
    expect(model.view.range).toEqual({ from: 2880, to: 6480 });
  });

  it("gives up what was dragged when the range is chosen otherwise", async () => {
    const { model } = makeModel(METRICS);
    model.start();
    await settled();
    model.time.drag({ from: 1, to: 2 });
    model.time.goTo(null);
    expect(model.time.span).toEqual({ from: 3600, to: 7200 });
    model.time.drag({ from: 1, to: 2 });
    model.address.change({ range: { all: true } });
    expect(model.time.span).toEqual({ from: 0, to: 7200 });
  });
});

describe("panels", () => {
  it("are added, moved and removed, twelve at most, one at least", () => {
    const { model } = makeModel(METRICS);
    model.panels.metrics = METRICS;
    const more = ["d", "e", "f", "g", "h", "i", "j", "k", "l"];
    for (const name of [...more, "m"]) model.panels.add(metric(name));
    expect(model.view.panels?.map((one) => one.metric)).toEqual(["cpu", "memory", "pressure_cpu", ...more]);
    expect(model.notice).toContain("Twelve panels are the most");
    model.panels.add(metric("cpu"));
    expect(model.notice).toBe("cpu is shown already, as panel 1.");
    model.panels.move(0, 1);
    model.panels.replace(0, metric("b"));
    expect(model.view.panels?.slice(0, 2).map((one) => one.metric)).toEqual(["b", "cpu"]);
    for (let count = 0; count < 13; count += 1) model.panels.remove(0);
    expect(model.view.panels?.map((one) => one.metric)).toEqual(["l"]);
  });
});

describe("sums of groups", () => {
  it("take the place of single containers, and are not streamed", async () => {
    const { model, page, source } = makeModel(METRICS, { live: true });
    page.location.hash = "#by=namespace&panels=cpu,memory_peak";
    model.start();
    await settled();
    const [cpu, peak] = model.panels.list;
    expect(source.requested).toContain("groups cpu namespace");
    expect(cpu?.joined).toBe("sum");
    expect(cpu?.slot.value?.series.map((one) => one.id)).toEqual(["group:shop"]);
    // What is not read of all containers at once stays as it is.
    expect(source.requested).toContain("timeseries memory_peak");
    expect(peak?.joined).toBe("");
    expect(source.requested).not.toContain("study cpu");
  });

  it("end where a container is chosen", () => {
    const { model } = makeModel(METRICS);
    model.address.change({ by: "namespace" });
    model.toggleContainer(container("a", "web/a", 0, 1));
    expect(model.view.by).toBe("");
  });
});

describe("requests", () => {
  it("of what costs more go out where one before them was refused", async () => {
    const { model, source } = makeModel(METRICS);
    source.refused = ["timeseries cpu"];
    model.start();
    await settled();
    await vi.advanceTimersByTimeAsync(2000);
    expect(model.panels.list[0]?.slot.trouble?.failure.title).toBe("not found");
    expect(source.requested).toContain("incidents");
    expect(source.requested.filter((name) => name === "timeseries cpu").length).toBeLessThan(4);
  });

  it("are tried again after a failure of the server, later each time, and not after a refusal", async () => {
    const { model, source } = makeModel(METRICS);
    const instance = vi.spyOn(source, "instance").mockRejectedValue(new Failure("busy", "", "", true));
    model.start();
    await vi.advanceTimersByTimeAsync(0);
    expect(model.data.instance.trouble).toMatchObject({ againAt: 7202 });
    await vi.advanceTimersByTimeAsync(2000);
    expect(instance).toHaveBeenCalledTimes(2);
    expect(model.data.instance.trouble).toMatchObject({ since: 7200, againAt: 7206 });
    instance.mockRejectedValue(new Failure("no such node", "", "", false));
    await vi.advanceTimersByTimeAsync(60_000);
    expect(instance).toHaveBeenCalledTimes(3);
    instance.mockRestore();
    model.data.requests.retry(model.data.instance);
    await settled();
    expect(model.data.instance).toMatchObject({ trouble: null, value: { node: "n" } });
  });

  it("a study that failed is tried again as well", async () => {
    const { model, source } = makeModel([metric("cpu")]);
    const study = vi.spyOn(source, "study").mockRejectedValueOnce(new Failure("busy", "", "", true));
    model.start();
    await settled();
    expect(model.panels.list[0]?.studies.trouble).not.toBeNull();
    await settled();
    expect(study).toHaveBeenCalledTimes(2);
    expect(model.panels.list[0]?.studies).toMatchObject({ trouble: null, value: { study: "all" } });
  });

  it("an answer to an earlier question is not shown", async () => {
    const { model } = makeModel(METRICS);
    const slot = { key: "", value: null as number | null, trouble: null, loadingSince: 0 };
    let first: (value: number) => void = () => undefined;
    model.data.requests.load("x", "1", slot, () => new Promise<number>((done) => (first = done)));
    model.data.requests.load("x", "2", slot, () => Promise.resolve(2));
    first(1);
    await vi.advanceTimersByTimeAsync(0);
    expect(slot.value).toBe(2);
  });
});

describe("the live stream", () => {
  it("appends points, moves the window, and is reported when it falls silent", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    expect(source.listeners).toHaveLength(1);
    source.listeners[0]?.points({ at: 7201, lag_seconds: 0.5, panels: { cpu: { a: 9 } } });
    expect(model.panels.list[0]?.slot.value?.series[0]?.mean).toEqual([1, 2, 9]);
    expect(model.time.span.to).toBe(7201);
    expect(model.live).toMatchObject({ state: "live", lag: 0.5 });
    await vi.advanceTimersByTimeAsync(12_000);
    expect(model.live).toMatchObject({ state: "lost", reason: "the viewer said nothing for 10 s" });
  });

  it("moves on by the status when every container that is drawn is gone", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    const asked = source.requested.length;
    source.listeners.at(-1)?.status({ live: true, reason: "", lag_seconds: 0.4, at: 7260 });
    await settled();
    expect([model.time.span.to, model.live.state]).toEqual([7260, "live"]);
    expect(source.requested.length).toBeGreaterThan(asked);
  });

  it("keeps its points where an answer that was asked for earlier comes after them", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    const asked = source.requested.filter((name) => name === "timeseries cpu").length;
    source.listeners[0]?.points({ at: 7201, lag_seconds: 0.5, panels: { cpu: { a: 9 } } });
    source.listeners[0]?.points({ at: 7230, lag_seconds: 0.5, panels: { cpu: { a: 8 } } });
    await settled();
    expect(source.requested.filter((name) => name === "timeseries cpu").length).toBeGreaterThan(asked);
    expect(model.panels.list[0]?.slot.value?.series[0]?.mean).toEqual([1, 2, 9, 8]);
  });

  it("goes on under the one before until the new one speaks", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    const [first] = source.listeners;
    first?.status({ live: true, reason: "", lag_seconds: 0.4, at: 7201 });
    // Other series are drawn: another stream is wanted, and its connection has to be waited for.
    model.panels.list[0]!.slot.value!.series[0]!.id = "b";
    model.live.listen();
    expect([source.listeners.length, source.closed]).toEqual([2, 0]);
    first?.status({ live: true, reason: "", lag_seconds: 0.4, at: 7230 });
    source.listeners[1]?.lost(false);
    expect([model.time.span.to, model.live.state]).toEqual([7230, "live"]);
    source.listeners[1]?.status({ live: true, reason: "", lag_seconds: 0.4, at: 7231 });
    expect([model.time.span.to, source.closed]).toEqual([7231, 1]);
  });

  it("is not opened anew for the same series in another order", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    const { series } = model.panels.list[0]!.slot.value!;
    series.push({ ...series[0]!, id: "b" });
    model.live.listen();
    const opened = source.listeners.length;
    series.reverse();
    model.live.listen();
    expect(source.listeners).toHaveLength(opened);
  });

  it("is opened again where the viewer refused it", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    source.listeners[0]?.lost(true);
    expect(model.live.state).toBe("lost");
    await vi.advanceTimersByTimeAsync(5000);
    expect(source.listeners).toHaveLength(2);
  });

  it("is closed when the window is fixed", async () => {
    const { model, source } = makeModel(METRICS, { live: true });
    model.start();
    await settled();
    model.toggleLive();
    expect([source.closed, model.live.state, model.view.range]).toEqual([1, "paused", { from: 6300, to: 7200 }]);
  });
});

describe("restarted containers", () => {
  const row = { ...container("ccc", "web-1/api", 510, 1000), lives: ["aaa", "bbb", "ccc"] };

  it("are meant by the id of any of their lives, and by their name", () => {
    for (const word of ["aaa", "bb", "ccc", "web-1/api"]) expect(isOf(row, word)).toBe(true);
    expect(isOf(row, "d")).toBe(false);
  });

  it("are left by a click whichever of their lives the address names", () => {
    const { model } = makeModel(METRICS);
    model.selection.toggle(row);
    expect(model.view.containers).toEqual(["ccc"]);
    model.address.change({ containers: ["aaa", "other"] });
    model.selection.toggle(row);
    expect(model.view.containers).toEqual(["other"]);
  });
});

describe("right-sizing", () => {
  it("is requested while its sheet is open, and once", async () => {
    const { model, page, source } = makeModel(METRICS);
    model.start();
    await settled();
    expect(source.requested).not.toContain("rightsize");
    model.openSheet("rightsize");
    await settled();
    model.openSheet("");
    model.openSheet("rightsize");
    await settled();
    expect(source.requested.filter((name) => name === "rightsize")).toHaveLength(1);
    expect(model.data.sizes.value?.sentence).toBe("All fit.");
    expect(page.addresses).toEqual(["#sheet=rightsize"]);
    model.openSheet("");
    expect(model.openedSheet).toBe("");
    expect(page.addresses).toEqual(["#"]);
  });

  it("of another node is not shown for this one", async () => {
    const { model, source } = makeModel(METRICS);
    model.start();
    model.openSheet("rightsize");
    await settled();
    source.sizes = { ...source.sizes, sentence: "Of the other." };
    model.openSheet("");
    model.address.change({ node: "m" });
    expect(model.data.sizes.value).toBeNull();
    await settled();
    model.openSheet("rightsize");
    await settled();
    expect(model.data.sizes.value?.sentence).toBe("Of the other.");
  });

  it("waits for data: its sheet does not cover why there are none", async () => {
    const { model, source } = makeModel(METRICS, { from: null, to: null });
    model.start();
    model.openSheet("rightsize");
    await settled();
    expect(model.openedSheet).toBe("");
    expect(source.requested).not.toContain("rightsize");
  });

  it("is tried again after a failure of the server", async () => {
    const { model, source } = makeModel(METRICS);
    const rightsize = vi.spyOn(source, "rightsize").mockRejectedValueOnce(new Failure("busy", "", "", true));
    model.start();
    model.openSheet("rightsize");
    await vi.advanceTimersByTimeAsync(1000);
    expect(model.data.sizes.trouble?.failure.title).toBe("busy");
    await vi.advanceTimersByTimeAsync(4000);
    expect(rightsize).toHaveBeenCalledTimes(2);
    expect(model.data.sizes.trouble).toBeNull();
  });
});
