import { NO_FILTER } from "../src/api";
import { describe, expect, it } from "vitest";
import { OfflineSource, rebucket, type OfflineAnswers } from "../src/offline";
import { answer } from "./answers";

describe("the file's own downsampling", () => {
  it("keeps extremes and means; what was not measured stays so", () => {
    const one = answer({ a: [1, 3, null, null, 5, 9] });
    const coarse = rebucket(one, { from: 0, to: 5 }, 3);
    expect(coarse.time).toEqual([0, 2, 4]);
    expect(coarse.series[0]).toMatchObject({ mean: [2, null, 7], min: [1, null, 5], max: [3, null, 9] });
    expect(coarse.bucket_seconds).toBe(2);
  });

  it("gives every sample once there are few", () => {
    const one = answer({ a: [1, 2, 3, 4, 5, 6, 7, 8] });
    expect(rebucket(one, { from: 2, to: 4 }, 10)).toBe(one);
  });

  it("a metric that is not carried is refused by name", async () => {
    const source = new OfflineSource({ timeseries: [answer({ a: [1] })] } as unknown as OfflineAnswers);
    const query = { metric: "memory", scope: "", containers: [], filter: NO_FILTER, span: { from: 0, to: 1 }, points: 10 };
    await expect(source.timeseries(query)).rejects.toMatchObject({ title: "this file does not carry memory", detail: "it carries cpu" });
  });

  it("right-sizing is not carried either, and it says where it is", async () => {
    const source = new OfflineSource({} as unknown as OfflineAnswers);
    await expect(source.compare()).rejects.toMatchObject({ title: "this file does not compare", again: false });
    await expect(source.rightsize()).rejects.toMatchObject({ title: "this file does not carry right-sizing", again: false });
  });
});
