/** The answers that the page needs, and the requests to the viewer: same origin, a deadline on every request. */

import type { CardListener } from "./card-stream";
import { CARDS_AT_MOST } from "./incidents";
import type { Span } from "./time";
import type {
  ComparisonJson, ContainersJson, ErrorJson, EventsJson, FiltersJson, GroupsJson, HealthJson, HeatJson, IncidentsJson, InstanceJson, LivePointsJson, LiveStatusJson, MetricJson, MetricsJson, RightsizeJson, ShiftsJson, StudiesJson, StudyJson, StudyRowJson, SummaryJson, TimeseriesJson, WrongJson,
} from "./types";

/** A busy server is waited for: to ask again would only add to its work. */
export const DEADLINE_MS = 120_000;

/** What failed, why, and what to do where the server says it. */
export class Failure extends Error {
  constructor(
    readonly title: string,
    readonly detail: string,
    readonly hint: string,
    /** Whether to try again: a request that was refused stays refused. */
    readonly again: boolean,
  ) {
    super(`${title}: ${detail}`);
  }
}

/** Which containers; an empty word lets all pass. */
export interface ContainerFilter {
  namespace: string;
  qos: string;
  labels: string;
  search: string;
}

export const NO_FILTER: ContainerFilter = { namespace: "", qos: "", labels: "", search: "" };

export interface ContainerQuery extends ContainerFilter {
  metric: string;
  span: Span;
  limit: number;
}

export interface SeriesQuery {
  metric: string;
  scope: string;
  containers: string[];
  /** Among whom the busiest are sought where no container is named. */
  filter: ContainerFilter;
  span: Span;
  points: number;
}

/** Of all containers that a filter admits. */
export interface SweptQuery {
  metric: string;
  filter: ContainerFilter;
  span: Span;
  points: number;
}

export interface StudyQuery extends Omit<SeriesQuery, "points" | "filter"> {
  study: string;
}

export interface LiveListener {
  points(points: LivePointsJson): void;
  status(status: LiveStatusJson): void;
  /** Refused: the viewer answered, and sends no events; the browser does not try again. */
  lost(isRefused: boolean): void;
}

/** Where the answers come from: the viewer's API, or a file that has them in itself. */
export interface Source {
  readonly offline: boolean;
  /** Whether what answers is being loaded first, as after a rest of the viewer. */
  isStarting(): Promise<boolean>;
  instance(signal?: AbortSignal): Promise<InstanceJson>;
  summary(span: Span, filter: ContainerFilter, signal?: AbortSignal): Promise<SummaryJson>;
  metrics(signal?: AbortSignal): Promise<MetricJson[]>;
  filters(signal?: AbortSignal): Promise<FiltersJson>;
  containers(query: ContainerQuery, signal?: AbortSignal): Promise<ContainersJson>;
  timeseries(query: SeriesQuery, signal?: AbortSignal): Promise<TimeseriesJson>;
  studies(signal?: AbortSignal): Promise<StudyRowJson[]>;
  study(query: StudyQuery, signal?: AbortSignal): Promise<StudyJson>;
  events(span: Span, filter: ContainerFilter, signal?: AbortSignal): Promise<EventsJson>;
  /** Of one container, over all its lives. */
  eventsOf(container: string, span: Span, signal?: AbortSignal): Promise<EventsJson>;
  incidents(span: Span, signal?: AbortSignal): Promise<IncidentsJson>;
  /** Every container and metric by its change against as long a time before. */
  changes(span: Span, filter: ContainerFilter, signal?: AbortSignal): Promise<ShiftsJson>;
  /** Sums by namespace, workload or node. */
  groups(query: SweptQuery & { group: string }, signal?: AbortSignal): Promise<GroupsJson>;
  /** How near each container is to its limit. */
  heat(query: SweptQuery, signal?: AbortSignal): Promise<HeatJson>;
  /** Of the last seven days: less says little about what fits. */
  rightsize(signal?: AbortSignal): Promise<RightsizeJson>;
  /** A range beside as long a one before it, of one workload or (empty) of all. */
  compare(span: Span, workload: string, signal?: AbortSignal): Promise<ComparisonJson>;
  /** Opens the live stream; returns what closes it. */
  live(query: { metrics: string[]; containers: string[] }, listener: LiveListener): () => void;
  /** Opens the stream of what is wrong now; returns what closes it. */
  cards(listener: CardListener): () => void;
}

type Params = Record<string, string | number | undefined>;

export function renderQuery(params: Params): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(params)) if (value !== undefined && value !== "") out.set(key, String(value));
  return out.toString();
}

function spanParams(span: Span): Params {
  return { from: span.from.toFixed(3), to: span.to.toFixed(3) };
}

function filterParams({ namespace, qos, labels, search }: ContainerFilter): Params {
  return { namespace, qos_class: qos, labels, search };
}

/** Containers are what the server assumes: their scope is left out. */
export function seriesParams({ metric, scope, containers, span }: Omit<SeriesQuery, "points" | "filter">): Params {
  const ofContainers = scope === "" || scope === "container";
  return {
    metric,
    scope: ofContainers ? undefined : scope,
    containers: ofContainers ? containers.join(",") : undefined,
    ...spanParams(span),
  };
}

export class Server implements Source {
  readonly offline = false;

  /** The node that is looked at; empty for all. */
  constructor(private readonly node: () => string) {}

  isStarting = async () => (await this.get<HealthJson>("/api/health", {})).answers !== "ready";
  instance = (signal?: AbortSignal) => this.get<InstanceJson>("/api/instance", {}, signal);
  summary = (span: Span, filter: ContainerFilter, signal?: AbortSignal) => this.get<SummaryJson>("/api/summary", { ...filterParams(filter), ...spanParams(span) }, signal);
  metrics = async (signal?: AbortSignal) => (await this.get<MetricsJson>("/api/metrics", {}, signal)).metrics;
  filters = (signal?: AbortSignal) => this.get<FiltersJson>("/api/filters", {}, signal);
  studies = async (signal?: AbortSignal) => (await this.get<StudiesJson>("/api/studies", {}, signal)).studies;
  events = (span: Span, filter: ContainerFilter, signal?: AbortSignal) => this.get<EventsJson>("/api/events", { ...filterParams(filter), ...spanParams(span) }, signal);
  eventsOf = (container: string, span: Span, signal?: AbortSignal) => this.get<EventsJson>("/api/events", { containers: container, ...spanParams(span) }, signal);
  changes = (span: Span, filter: ContainerFilter, signal?: AbortSignal) => this.get<ShiftsJson>("/api/changes", { ...filterParams(filter), ...spanParams(span) }, signal);
  groups = ({ metric, group, filter, span, points }: SweptQuery & { group: string }, signal?: AbortSignal) => this.get<GroupsJson>("/api/groups", { metric, group, max_points: points, ...filterParams(filter), ...spanParams(span) }, signal);
  heat = ({ metric, filter, span, points }: SweptQuery, signal?: AbortSignal) => this.get<HeatJson>("/api/heat", { metric, max_points: points, ...filterParams(filter), ...spanParams(span) }, signal);
  incidents = (span: Span, signal?: AbortSignal) => this.get<IncidentsJson>("/api/incidents", { most: CARDS_AT_MOST, ...spanParams(span) }, signal);
  compare = (span: Span, workload: string, signal?: AbortSignal) => this.get<ComparisonJson>("/api/compare", { container: workload, ...spanParams(span) }, signal);
  rightsize = (signal?: AbortSignal) => this.get<RightsizeJson>("/api/rightsize", { range: "1w" }, signal);

  containers(query: ContainerQuery, signal?: AbortSignal): Promise<ContainersJson> {
    const { metric, limit, span } = query;
    return this.get("/api/containers", { metric, limit, lives: "joined", ...filterParams(query), ...spanParams(span) }, signal);
  }

  timeseries(query: SeriesQuery, signal?: AbortSignal): Promise<TimeseriesJson> {
    const filter = query.containers.length || query.scope ? {} : filterParams(query.filter);
    return this.get("/api/timeseries", { ...seriesParams(query), ...filter, lives: "joined", max_points: query.points }, signal);
  }

  study(query: StudyQuery, signal?: AbortSignal): Promise<StudyJson> {
    return this.get(`/api/study/${encodeURIComponent(query.study)}`, seriesParams(query), signal);
  }

  live({ metrics, containers }: { metrics: string[]; containers: string[] }, listener: LiveListener): () => void {
    const stream = new EventSource(this.address("/api/live", { metric: metrics.join(","), containers: containers.join(",") }));
    stream.addEventListener("points", (event: MessageEvent<string>) => listener.points(JSON.parse(event.data) as LivePointsJson));
    stream.addEventListener("status", (event: MessageEvent<string>) => listener.status(JSON.parse(event.data) as LiveStatusJson));
    stream.addEventListener("error", () => listener.lost(stream.readyState === EventSource.CLOSED));
    return () => stream.close();
  }

  cards(listener: CardListener): () => void {
    const stream = new EventSource(this.address("/api/incidents", { most: CARDS_AT_MOST }));
    stream.addEventListener("cards", (event: MessageEvent<string>) => listener.cards(JSON.parse(event.data) as WrongJson));
    stream.addEventListener("still", () => listener.still());
    stream.addEventListener("error", () => listener.lost(stream.readyState === EventSource.CLOSED));
    return () => stream.close();
  }

  private address(path: string, params: Params): string {
    const query = renderQuery({ ...params, node: this.node() });
    return query ? `${path}?${query}` : path;
  }

  private async get<T>(path: string, params: Params, signal?: AbortSignal): Promise<T> {
    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort("late"), DEADLINE_MS);
    const cancel = (): void => stop.abort("cancelled");
    signal?.addEventListener("abort", cancel, { once: true });
    if (signal?.aborted) cancel();
    try {
      const answer = await fetch(this.address(path, params), { signal: stop.signal, headers: { accept: "application/json" } });
      if (!answer.ok) throw await readFailure(path, answer);
      return (await answer.json()) as T;
    } catch (error) {
      if (error instanceof Failure || stop.signal.reason === "cancelled") throw error;
      if (stop.signal.reason === "late") {
        throw new Failure(`${path} did not answer`, `no answer within ${DEADLINE_MS / 1000} s`, "The server may be busy or gone.", true);
      }
      throw new Failure(`${path} could not be reached`, "the connection failed", "Is the viewer still running?", true);
    } finally {
      clearTimeout(timer);
      signal?.removeEventListener("abort", cancel);
    }
  }
}

async function readFailure(path: string, answer: Response): Promise<Failure> {
  const again = answer.status >= 500 || answer.status === 429;
  try {
    const body = (await answer.json()) as { [key in keyof ErrorJson]?: unknown };
    const text = (value: unknown): string => (typeof value === "string" ? value : "");
    return new Failure(text(body.error) || `${path} answered ${answer.status}`, text(body.detail), text(body.hint), again);
  } catch {
    return new Failure(`${path} answered ${answer.status}`, answer.statusText || "without a reason", "", again);
  }
}

export function isCancelled(error: unknown): boolean {
  return error === "cancelled" || (error instanceof DOMException && error.name === "AbortError");
}
