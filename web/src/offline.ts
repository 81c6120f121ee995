/** Answers without a server: export.html has them in itself. */

import { match } from "./fuzzy";
import { Failure, type ContainerQuery, type SeriesQuery, type Source, type StudyQuery } from "./api";
import { isOf, places, type Value } from "./series";
import type { Span } from "./time";
import type { ComparisonJson, ContainersJson, EventsJson, FiltersJson, GroupsJson, HeatJson, IncidentsJson, InstanceJson, MetricJson, MetricsJson, RightsizeJson, ShiftsJson, StudiesJson, StudyJson, SummaryJson, TimeseriesJson } from "./types";

/** What use/viewer/offline_page.py writes into #nodescope-data. */
export interface OfflineAnswers {
  instance: InstanceJson;
  metrics: MetricsJson;
  containers: ContainersJson;
  filters: FiltersJson;
  events: EventsJson;
  summary: SummaryJson;
  studies: StudiesJson;
  timeseries: TimeseriesJson[];
  findings: StudyJson[];
  incidents: IncidentsJson;
}

/** null where the element was never filled. */
export function openOffline(page: Document): OfflineSource | null {
  const text = page.getElementById("nodescope-data")?.textContent ?? "null";
  const answers = JSON.parse(text) as OfflineAnswers | null;
  return answers && new OfflineSource(answers);
}

/** Downsampling as the server does it: at most so many points in the span, each with its mean and its extremes. */
export function rebucket(answer: TimeseriesJson, span: Span, points: number): TimeseriesJson {
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

function refuse(what: string): Failure {
  return new Failure(`this file does not carry ${what}`, "it has a few containers of one range", "Open the data folder with nodescope viewer.", false);
}

export class OfflineSource implements Source {
  readonly offline = true;

  constructor(private readonly answers: OfflineAnswers) {}

  isStarting = () => Promise.resolve(false);
  instance = () => Promise.resolve({ ...this.answers.instance, live: false });
  summary = () => Promise.resolve(this.answers.summary);
  filters = () => Promise.resolve(this.answers.filters);
  studies = () => Promise.resolve(this.answers.studies.studies);
  events = () => Promise.resolve(this.answers.events);
  incidents = () => Promise.resolve(this.answers.incidents);
  eventsOf = (container: string) => Promise.resolve({ ...this.answers.events, events: this.answers.events.events.filter((event) => event.container.startsWith(container)) });
  changes = (): Promise<ShiftsJson> => Promise.reject(refuse("changes"));
  groups = (): Promise<GroupsJson> => Promise.reject(refuse("sums of groups"));
  heat = (): Promise<HeatJson> => Promise.reject(refuse("heat maps"));
  live = () => () => undefined;
  cards = () => () => undefined;
  compare = (): Promise<ComparisonJson> => Promise.reject(new Failure("this file does not compare", "it has one range", "Open the data folder with nodescope viewer.", false));
  rightsize = (): Promise<RightsizeJson> => Promise.reject(new Failure("this file does not carry right-sizing", "it has a few hours of a few containers", "Run nodescope rightsize on the data folder.", false));

  metrics(): Promise<MetricJson[]> {
    const known = new Set(this.answers.timeseries.map((answer) => answer.metric));
    return Promise.resolve(this.answers.metrics.metrics.filter((metric) => known.has(metric.name)));
  }

  containers(query: ContainerQuery): Promise<ContainersJson> {
    const kept = this.answers.containers.containers.filter(
      (row) => (!query.namespace || row.namespace === query.namespace) && (!query.qos || row.qos_class === query.qos) && match(query.search, row.name) !== null,
    );
    return Promise.resolve({ ...this.answers.containers, containers: kept, total: kept.length });
  }

  timeseries(query: SeriesQuery): Promise<TimeseriesJson> {
    const answer = this.answers.timeseries.find((each) => each.metric === query.metric);
    if (!answer) {
      const known = this.answers.timeseries.map((each) => each.metric).join(", ");
      return Promise.reject(new Failure(`this file does not carry ${query.metric}`, `it carries ${known}`, "", false));
    }
    const wanted = query.containers;
    const series = wanted.length ? answer.series.filter((each) => wanted.some((id) => isOf(each, id))) : answer.series;
    return Promise.resolve(rebucket({ ...answer, series }, query.span, query.points));
  }

  study(query: StudyQuery): Promise<StudyJson> {
    const results = this.answers.findings
      .flatMap((answer) => answer.results)
      .filter((result) => result.series.metric === query.metric && (query.study === "all" || result.study === query.study));
    return Promise.resolve({ study: query.study, results });
  }
}
