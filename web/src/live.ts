/** The live stream: new points are appended to the panels; a stream that fell silent is reported. */

import type { Address } from "./address";
import type { Source } from "./api";
import type { Panel, Panels } from "./panels";
import { append } from "./series";
import { now } from "./timers";
import type { InstanceJson, LivePointsJson } from "./types";
import type { TimeWindow } from "./time-window";

export type LiveState = "archive" | "live" | "paused" | "lost" | "connecting";

const SILENT_SECONDS = 10;
const AGAIN_SECONDS = 3;
const NOTHING = (): void => undefined;

export class Live {
  state: LiveState = "connecting";
  reason = "";
  /** Seconds between the newest sample and its arrival here. */
  lag: number | null = null;
  /** What the open stream carries; empty when none is open. */
  private key = "";
  private node = "";
  /** The stream that speaks, and one that was opened in its place and has not spoken yet. */
  private speaking = NOTHING;
  private opening = NOTHING;
  /** When the stream was last heard of. */
  private heard = 0;
  /** When the viewer refused a stream: the browser does not ask for that one again. */
  private refusedAt = 0;

  constructor(
    private readonly source: Source,
    private readonly address: Address,
    private readonly time: TimeWindow,
    private readonly panels: Panels,
    /** Requests what is due, and draws. */
    private readonly refresh: () => void,
  ) {}

  begin(instance: InstanceJson): void {
    this.lag = instance.lag_seconds;
    this.state = instance.live ? "live" : "archive";
  }

  /** Opens the stream of the series that are drawn, or closes it where none is wanted. */
  listen(): void {
    const loaded = this.panels.list.filter((panel) => panel.slot.value && !panel.joined);
    const metrics = [...new Set(loaded.map(wordOf))];
    const containers = [...new Set(loaded.flatMap((panel) => (panel.choice.scope ? [] : (panel.slot.value?.series.map((one) => one.id) ?? []))))];
    const wanted = this.time.isLive && !this.source.offline && metrics.length > 0;
    const key = wanted ? JSON.stringify([metrics, [...containers].sort(), this.address.view.node]) : "";
    if (key === this.key) return;
    this.key = key;
    this.refusedAt = 0;
    // The times of another node are none of this one's.
    if (!key || this.node !== this.address.view.node) this.closeAll();
    this.node = this.address.view.node;
    if (key) this.open(metrics, containers);
  }

  /** The stream before goes on until this one speaks: a browser opens only a few connections, and may have to wait for one. */
  private open(metrics: string[], containers: string[]): void {
    if (this.state !== "live") this.state = "connecting";
    this.opening();
    let isOpening = true;
    const close = this.source.live({ metrics, containers }, {
      points: (points) => {
        take();
        this.takePoints(points);
      },
      status: (status) => {
        take();
        this.lag = status.lag_seconds ?? this.lag;
        this.heard = now();
        // Time goes on by the newest sample of anybody: those that are drawn may all be gone.
        this.advance(status.live ? (status.at ?? 0) : 0);
        this.set(status.live ? "live" : "lost", status.reason);
      },
      lost: (isRefused) => {
        if (isRefused) this.refusedAt = now();
        // While another one speaks nothing is lost.
        if (!isOpening || this.speaking === NOTHING) this.set("lost", "the connection to the viewer broke; trying again");
      },
    });
    const take = (): void => {
      if (!isOpening) return;
      isOpening = false;
      this.speaking();
      this.speaking = close;
      this.opening = NOTHING;
    };
    this.opening = close;
  }

  private closeAll(): void {
    this.opening();
    this.speaking();
    this.opening = this.speaking = NOTHING;
    this.state = this.time.live ? "paused" : "archive";
  }

  /** True where the state must be drawn again: the age of the newest sample grows. */
  check(): boolean {
    if (this.refusedAt && now() - this.refusedAt >= AGAIN_SECONDS) {
      this.key = "";
      this.listen();
    }
    if (this.state === "live" && this.time.isLive && this.heard && now() - this.heard > SILENT_SECONDS) {
      this.set("lost", `the viewer said nothing for ${SILENT_SECONDS} s`);
    }
    return this.state === "lost";
  }

  private set(state: LiveState, reason: string): void {
    this.state = state;
    this.reason = reason;
    this.refresh();
  }

  private takePoints(points: LivePointsJson): void {
    this.lag = points.lag_seconds;
    this.heard = now();
    const keepFrom = this.time.span.from - 5;
    for (const panel of this.panels.list) {
      const values = points.panels[wordOf(panel)];
      if (values && panel.slot.value && !panel.joined && append(panel.slot.value, points.at, values, keepFrom)) panel.version += 1;
    }
    this.advance(points.at);
    this.set("live", "");
  }

  private advance(at: number): void {
    if (at <= this.time.newest) return;
    this.time.newest = at;
    if (this.time.isLive) this.time.sendMoved();
  }
}

/** What the stream calls a panel's metric: of containers by its name, of anything else with its scope. */
function wordOf(panel: Panel): string {
  const { metric, scope } = panel.choice;
  return scope ? `${scope}/${metric}` : metric;
}
