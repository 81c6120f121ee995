import { describe, expect, it } from "vitest";
import { match, search } from "../src/fuzzy";

describe("search", () => {
  const names = ["shop/cache-7/redis", "shop/catalog/server", "batch/report-cron", "memory_limit_share"];
  const find = (query: string): string[] => search(query, names, (name) => name);

  it("finds letters in order, the best first", () => {
    expect(find("cach")[0]).toBe("shop/cache-7/redis");
    expect(find("rcron")).toEqual(["batch/report-cron"]);
    expect(find("mls")[0]).toBe("memory_limit_share");
    expect(find("zzz")).toEqual([]);
  });

  it("letters in order count only where nobody has the text as it is", () => {
    expect(find("cat")).toEqual(["shop/catalog/server"]);
    expect(search("cat", ["cache-a-t", "cxaxt"], (name) => name)).toHaveLength(2);
  });

  it("without a query keeps everything in its order", () => expect(find("  ")).toEqual(names));

  it("a whole word beats scattered letters", () => {
    expect((match("cat", "catalog") ?? 0) > (match("cat", "cxaxt") ?? 0)).toBe(true);
  });

  it("is not slow on a kilobyte of hostile text", () => {
    expect(match("a".repeat(200), `${"a".repeat(199)}${"b".repeat(1000)}`)).toBeNull();
  });
});
