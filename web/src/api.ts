/** The one way to the server: same origin, a deadline on every request, errors as sentences. */

import type { Containers, Events, Filters, Instance, LivePoints, LiveStatus, Metric, Study, StudyAnswer, Summary, Timeseries } from "./types";
import type { Span } from "./time";

export const DEADLINE_MS = 15_000;

/** What failed, in words: what, why, and what to do where the server says it. */
export class Failure extends Error {
  constructor(
    readonly title: string,
    readonly detail: string,
    readonly hint: string,
    /** A request that was wrong stays wrong: only the others are tried again by themselves. */
    readonly again: boolean,
  ) {
    super(`${title}: ${detail}`);
  }
}

export interface ContainerQuery {
  metric: string;
  namespace: string;
  qos: string;
  labels: string;
  search: string;
  span: Span;
  limit: number;
}

export interface SeriesQuery {
  metric: string;
  scope: string;
  containers: string[];
  span: Span;
  points: number;
}

export interface StudyQuery {
  study: string;
  metric: string;
  scope: string;
  containers: string[];
  span: Span;
}

export interface LiveQuery {
  metrics: string[];
  containers: string[];
}

export interface LiveEars {
  points(points: LivePoints): void;
  status(status: LiveStatus): void;
  lost(): void;
}

/** Where the page's data come from: the viewer's API, or the page itself. */
export interface Source {
  readonly offline: boolean;
  instance(signal?: AbortSignal): Promise<Instance>;
  summary(span: Span, signal?: AbortSignal): Promise<Summary>;
  metrics(signal?: AbortSignal): Promise<Metric[]>;
  filters(signal?: AbortSignal): Promise<Filters>;
  containers(query: ContainerQuery, signal?: AbortSignal): Promise<Containers>;
  timeseries(query: SeriesQuery, signal?: AbortSignal): Promise<Timeseries>;
  studies(signal?: AbortSignal): Promise<Study[]>;
  study(query: StudyQuery, signal?: AbortSignal): Promise<StudyAnswer>;
  events(span: Span, signal?: AbortSignal): Promise<Events>;
  live(query: LiveQuery, ears: LiveEars): () => void;
}

type Words = Record<string, string | number | undefined>;

export function query(words: Words): string {
  const out = new URLSearchParams();
  for (const [key, value] of Object.entries(words)) if (value !== undefined && value !== "") out.set(key, String(value));
  return out.toString();
}

export function spanWords(span: Span): Words {
  return { from: span.from.toFixed(3), to: span.to.toFixed(3) };
}

/** Containers are the server's own case: it is the scope that is not said. */
export function seriesWords(asked: { metric: string; scope: string; containers: string[]; span: Span }): Words {
  const own = asked.scope === "" || asked.scope === "container";
  return {
    metric: asked.metric,
    scope: own ? undefined : asked.scope,
    containers: own ? asked.containers.join(",") : undefined,
    ...spanWords(asked.span),
  };
}

export class Server implements Source {
  readonly offline = false;

  constructor(
    private readonly node: () => string,
    private readonly base = "",
  ) {}

  instance(signal?: AbortSignal): Promise<Instance> {
    return this.get("/api/instance", {}, signal);
  }

  summary(span: Span, signal?: AbortSignal): Promise<Summary> {
    return this.get("/api/summary", spanWords(span), signal);
  }

  async metrics(signal?: AbortSignal): Promise<Metric[]> {
    return (await this.get<{ metrics: Metric[] }>("/api/metrics", {}, signal)).metrics;
  }

  filters(signal?: AbortSignal): Promise<Filters> {
    return this.get("/api/filters", {}, signal);
  }

  containers(asked: ContainerQuery, signal?: AbortSignal): Promise<Containers> {
    const { metric, namespace, labels, search, limit, qos, span } = asked;
    return this.get("/api/containers", { metric, namespace, labels, search, limit, qos_class: qos, ...spanWords(span) }, signal);
  }

  timeseries(asked: SeriesQuery, signal?: AbortSignal): Promise<Timeseries> {
    return this.get("/api/timeseries", { ...seriesWords(asked), max_points: asked.points }, signal);
  }

  async studies(signal?: AbortSignal): Promise<Study[]> {
    return (await this.get<{ studies: Study[] }>("/api/studies", {}, signal)).studies;
  }

  study(asked: StudyQuery, signal?: AbortSignal): Promise<StudyAnswer> {
    return this.get(`/api/study/${encodeURIComponent(asked.study)}`, seriesWords(asked), signal, 4 * DEADLINE_MS);
  }

  events(span: Span, signal?: AbortSignal): Promise<Events> {
    return this.get("/api/events", spanWords(span), signal);
  }

  live(asked: LiveQuery, ears: LiveEars): () => void {
    const words = { metric: asked.metrics.join(","), containers: asked.containers.join(","), node: this.node() };
    const stream = new EventSource(`${this.base}/api/live?${query(words)}`);
    stream.addEventListener("points", (event) => ears.points(JSON.parse((event as MessageEvent<string>).data) as LivePoints));
    stream.addEventListener("status", (event) => ears.status(JSON.parse((event as MessageEvent<string>).data) as LiveStatus));
    stream.addEventListener("error", () => ears.lost());
    return () => stream.close();
  }

  address(path: string, words: Words): string {
    const asked = query({ ...words, node: this.node() });
    return `${this.base}${path}${asked ? `?${asked}` : ""}`;
  }

  private async get<T>(path: string, words: Words, signal?: AbortSignal, deadline = DEADLINE_MS): Promise<T> {
    const stop = new AbortController();
    const late = setTimeout(() => stop.abort("late"), deadline);
    const give = (): void => stop.abort("left");
    signal?.addEventListener("abort", give, { once: true });
    if (signal?.aborted) give();
    try {
      const answer = await fetch(this.address(path, words), { signal: stop.signal, headers: { accept: "application/json" } });
      if (!answer.ok) throw await readFailure(path, answer);
      return (await answer.json()) as T;
    } catch (error) {
      if (error instanceof Failure || stop.signal.reason === "left") throw error;
      if (stop.signal.reason === "late") {
        throw new Failure(`${path} did not answer`, `no answer within ${deadline / 1000} s`, "The server may be busy or gone.", true);
      }
      throw new Failure(`${path} could not be reached`, "the connection failed", "Is the viewer still running?", true);
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", give);
    }
  }
}

async function readFailure(path: string, answer: Response): Promise<Failure> {
  const again = answer.status >= 500 || answer.status === 429;
  try {
    const body = (await answer.json()) as { error?: unknown; detail?: unknown; hint?: unknown };
    const said = (value: unknown): string => (typeof value === "string" ? value : "");
    return new Failure(said(body.error) || `${path} answered ${answer.status}`, said(body.detail), said(body.hint), again);
  } catch {
    return new Failure(`${path} answered ${answer.status}`, answer.statusText || "without a reason", "", again);
  }
}

export function isLeft(error: unknown): boolean {
  return error === "left" || (error instanceof DOMException && error.name === "AbortError");
}
