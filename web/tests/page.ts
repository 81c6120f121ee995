/** A page and a source of answers without a browser and a server, for tests of the model. */

import { Failure, type LiveListener, type Source } from "../src/api";
import type { CardListener } from "../src/card-stream";
import { Model } from "../src/model";
import type { ContainerJson, IncidentsJson, InstanceJson, MetricJson, RightsizeJson } from "../src/types";
import { answer } from "./answers";

export class FakePage {
  innerWidth = 1440;
  location = { hash: "", origin: "http://127.0.0.1:8050" };
  addresses: string[] = [];
  history = {
    state: null as unknown,
    pushState: (state: unknown, _: string, address: string): void => void (this.addresses.push(address), (this.history.state = state)),
    replaceState: (state: unknown, _: string, address: string): void => void (this.addresses.splice(-1, 1, address), (this.history.state = state)),
    back: (): void => undefined,
  };
  seen = true;
  /** Told by the page when it is hidden or seen again. */
  lookAway: () => void = () => undefined;
  document = {
    page: this,
    get visibilityState(): string {
      return this.page.seen ? "visible" : "hidden";
    },
    addEventListener: (_: string, run: () => void): void => void (this.lookAway = run),
  };
  localStorage = { getItem: () => null, setItem: () => undefined };
  addEventListener = (): void => undefined;
  setTimeout = (run: () => void, milliseconds: number) => setTimeout(run, milliseconds);
  clearTimeout = (id: number) => clearTimeout(id);
  setInterval = (run: () => void, milliseconds: number) => setInterval(run, milliseconds);
}

export function metric(name: string, more: Partial<MetricJson> = {}): MetricJson {
  return { name, scope: "container", plain: true, kind: "gauge", unit: "cores", help: "", priority: 0, scale: null, ...more };
}

export function container(id: string, name: string, first_seen: number, last_seen: number): ContainerJson {
  return {
    id, short_id: id, name, scope: "container", container: null, pod: null, namespace: "shop", qos_class: null, node: "n", image: null, workload: "web", workload_kind: "Deployment", workload_known_by: "pod name", cpu_request: null, memory_request: null, previous_exit: null, labels: {},
    restarts: 0, kills: 0, lives: [id], first_seen, last_seen, state: "running", value: 1, over_span: 1, last: 1, max: 1, spark: [], limit: null,
  };
}

const INSTANCE: InstanceJson = {
  version: "1", node: "n", nodes: ["n"], from: 0, to: 7200, live: false, lag_seconds: 1, agent: null, cores: 4, memory_bytes: 1, sizes: [], containers: 1,
  limit: { panels: 5, max_points: 2000, containers: 50, studies: 16 }, problems: [],
};

export class FakeSource implements Source {
  readonly offline = false;
  requested: string[] = [];
  listeners: LiveListener[] = [];
  closed = 0;
  cardListeners: CardListener[] = [];
  cardsClosed = 0;
  starting = false;
  rows: ContainerJson[] = [];
  sizes: RightsizeJson = { sentence: "All fit.", advice: [], patch: "", nodes: [] };

  constructor(
    private readonly known: MetricJson[],
    private readonly instanceOf: Partial<InstanceJson> = {},
  ) {}

  /** What the server does not have: answered by a refusal that is not tried again. */
  refused: string[] = [];

  private answer<T>(name: string, value: T): Promise<T> {
    this.requested.push(name);
    return this.refused.includes(name) ? Promise.reject(new Failure("not found", `no ${name}`, "", false)) : Promise.resolve(value);
  }

  isStarting = () => Promise.resolve(this.starting);
  instance = () => this.answer("instance", { ...INSTANCE, ...this.instanceOf });
  metrics = () => this.answer("metrics", this.known);
  studies = () => this.answer("studies", []);
  filters = () => this.answer("filters", { namespaces: [], qos_classes: [], nodes: [], labels: {} });
  summary = () => this.answer("summary", { tiles: [], restarts: 0, oom_kills: 0, at: 1, whose: null });
  events = () => this.answer("events", { events: [], truncated: false });
  incidents = () => this.answer("incidents", { nodes: [] } as IncidentsJson);
  containers = ({ metric }: { metric: string }) => this.answer(`containers by ${metric}`, { containers: this.rows, total: 0, truncated: false, metric, unit: "cores", ranked_from: 0, ranked_to: 1, sentence: "", recorded_seconds: null });
  timeseries = ({ metric }: { metric: string }) => this.answer(`timeseries ${metric}`, { ...answer({ a: [1, 2] }), metric });
  study = ({ metric }: { metric: string }) => this.answer(`study ${metric}`, { study: "all", results: [] });

  compare = () => this.answer("compare", { sentence: "It rose.", differences: [], looked_at: "", not_looked_at: [] });
  rightsize = () => this.answer("rightsize", this.sizes);

  eventsOf = () => this.answer("story", { events: [], truncated: false });
  changes = () => this.answer("changes", { sentence: "", from: 0, to: 1, before_from: 0, bucket_seconds: 1, containers: 0, pairs: 0, unseen: [], changes: [] });
  groups = ({ metric, group }: { metric: string; group: string }) => this.answer(`groups ${metric} ${group}`, { metric, unit: "cores", join: "sum" as const, group: "namespace" as const, bucket_seconds: 5, time: [0, 5], total: 1, groups: [{ key: "shop", name: "shop", node: "n", containers: 2, mean: [1, 2] }] });
  heat = ({ metric }: { metric: string }) => this.answer(`heat ${metric}`, { metric, bucket_seconds: 5, time: [], total: 0, rows: [] });

  cards(listener: CardListener): () => void {
    this.cardListeners.push(listener);
    return () => void (this.cardsClosed += 1);
  }

  live(_: unknown, listener: LiveListener): () => void {
    this.listeners.push(listener);
    return () => void (this.closed += 1);
  }
}

export function makeModel(known: MetricJson[], instance: Partial<InstanceJson> = {}): { model: Model; page: FakePage; source: FakeSource } {
  const page = new FakePage();
  const source = new FakeSource(known, instance);
  return { model: new Model(source, page as unknown as Window), page, source };
}
