/** The questions of the page of many nodes: same origin, a deadline on each. */

import { Failure, renderQuery } from "../api";
import { isSpan, renderLength, type Range } from "../time";
import type { ClusterComparisonJson, ClusterWorkloadsJson, ErrorJson, WallJson } from "../types";

const DEADLINE_MS = 30_000;

type Params = Record<string, string | number | undefined>;

export function rangeParams(range: Range | null): Params {
  if (range === null) return {};
  if (isSpan(range)) return { from: range.from.toFixed(3), to: range.to.toFixed(3) };
  return { range: "all" in range ? "all" : renderLength(range.last) };
}

export interface ClusterSource {
  wall(measure: string, range: Range | null, columns: number, signal: AbortSignal): Promise<WallJson>;
  workloads(metric: string, range: Range | null, search: string, signal: AbortSignal): Promise<ClusterWorkloadsJson>;
  compare(left: string, right: string, before: number | null, metric: string, measure: string, range: Range | null, signal: AbortSignal): Promise<ClusterComparisonJson>;
}

export class ClusterServer implements ClusterSource {
  wall = (measure: string, range: Range | null, columns: number, signal: AbortSignal) =>
    ask<WallJson>("/api/cluster/wall", { measure, columns, ...rangeParams(range) }, signal);

  workloads = (metric: string, range: Range | null, search: string, signal: AbortSignal) =>
    ask<ClusterWorkloadsJson>("/api/cluster/workloads", { metric, search, ...rangeParams(range) }, signal);

  compare = (left: string, right: string, before: number | null, metric: string, measure: string, range: Range | null, signal: AbortSignal) =>
    ask<ClusterComparisonJson>("/api/cluster/compare", { left, right, metric, measure, before: before === null ? undefined : before.toFixed(3), ...rangeParams(range) }, signal);
}

async function ask<T>(path: string, params: Params, signal: AbortSignal): Promise<T> {
  const late = AbortSignal.timeout(DEADLINE_MS);
  let answer: Response;
  try {
    answer = await fetch(`${path}?${renderQuery(params)}`, { signal: AbortSignal.any([signal, late]), headers: { accept: "application/json" } });
  } catch (error) {
    if (signal.aborted) throw error;
    throw new Failure(late.aborted ? "The viewer did not answer" : "The viewer could not be reached", late.aborted ? `no answer within ${DEADLINE_MS / 1000} s` : "the connection failed", "Is nodescope viewer still running?", true);
  }
  if (answer.ok) return (await answer.json()) as T;
  const said = (await answer.json().catch(() => ({}))) as Partial<ErrorJson>;
  throw new Failure(said.error ?? `${path} answered ${answer.status}`, said.detail ?? "", said.hint ?? "", answer.status >= 500);
}
