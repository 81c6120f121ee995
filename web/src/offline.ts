/** The page's own data, for export.html: the same questions, answered without a network. */

import { Failure, type ContainerQuery, type LiveEars, type LiveQuery, type SeriesQuery, type Source, type StudyQuery } from "./api";
import type { Carried, Containers, Events, Filters, Instance, Metric, Study, StudyAnswer, Summary, Timeseries, Value } from "./types";
import { places } from "./series";
import type { Span } from "./time";

export function readCarried(page: Document): Carried | null {
  const text = page.getElementById("nodescope-data")?.textContent ?? "null";
  return JSON.parse(text) as Carried | null;
}

/** The server's downsampling, here: so many points of the span, each with its mean and its extremes. */
export function rebucket(answer: Timeseries, span: Span, points: number): Timeseries {
  const [first, last] = places(answer.time, span);
  const each = Math.ceil((last - first + 1) / Math.max(points, 1));
  if (each <= 1) return answer;
  const starts: number[] = [];
  for (let start = first; start <= last; start += each) starts.push(start);
  const fold = (column: readonly Value[], how: (known: number[]) => number): Value[] =>
    starts.map((start) => {
      const known = column.slice(start, Math.min(start + each, last + 1)).filter((value): value is number => value !== null);
      return known.length ? how(known) : null;
    });
  return {
    ...answer,
    bucket_seconds: answer.bucket_seconds * each,
    time: starts.map((start) => answer.time[start] ?? span.from),
    series: answer.series.map((series) => ({
      ...series,
      mean: fold(series.mean, (known) => known.reduce((sum, value) => sum + value, 0) / known.length),
      min: fold(series.min, (known) => Math.min(...known)),
      max: fold(series.max, (known) => Math.max(...known)),
    })),
  };
}

export class Carrier implements Source {
  readonly offline = true;

  constructor(private readonly carried: Carried) {}

  instance(): Promise<Instance> {
    return Promise.resolve({ ...this.carried.instance, live: false });
  }

  summary(): Promise<Summary> {
    return Promise.resolve(this.carried.summary);
  }

  metrics(): Promise<Metric[]> {
    const held = new Set(this.carried.timeseries.map((answer) => answer.metric));
    return Promise.resolve(this.carried.metrics.metrics.filter((metric) => held.has(metric.name)));
  }

  filters(): Promise<Filters> {
    return Promise.resolve(this.carried.filters);
  }

  containers(asked: ContainerQuery): Promise<Containers> {
    const kept = this.carried.containers.containers.filter(
      (row) => (!asked.namespace || row.namespace === asked.namespace) && (!asked.qos || row.qos_class === asked.qos),
    );
    return Promise.resolve({ ...this.carried.containers, containers: kept, total: kept.length });
  }

  timeseries(asked: SeriesQuery): Promise<Timeseries> {
    const answer = this.carried.timeseries.find((each) => each.metric === asked.metric);
    if (!answer) {
      const held = this.carried.timeseries.map((each) => each.metric).join(", ");
      return Promise.reject(new Failure(`this file does not carry ${asked.metric}`, `it carries ${held}`, "", false));
    }
    const wanted = asked.containers;
    const series = wanted.length
      ? answer.series.filter((each) => wanted.some((id) => each.id.startsWith(id)))
      : answer.series;
    return Promise.resolve(rebucket({ ...answer, series }, asked.span, asked.points));
  }

  studies(): Promise<Study[]> {
    return Promise.resolve(this.carried.studies.studies);
  }

  study(asked: StudyQuery): Promise<StudyAnswer> {
    const results = this.carried.findings
      .flatMap((answer) => answer.results)
      .filter((result) => result.series.metric === asked.metric && (asked.study === "all" || result.study === asked.study));
    return Promise.resolve({ study: asked.study, results });
  }

  events(_span: Span): Promise<Events> {
    return Promise.resolve(this.carried.events);
  }

  live(_asked: LiveQuery, _ears: LiveEars): () => void {
    return () => undefined;
  }
}
