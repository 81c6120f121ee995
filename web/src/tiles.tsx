/** The four tiles at the top: CPU, memory, pressure and containers at the end of the range, and what each figure is. */

import { brief, quantity, shorten, spoken } from "./format";
import type { Model } from "./model";
import { Spark } from "./spark";
import { Trouble } from "./states";
import { minute, tellTimes, zone } from "./time";
import type { SummaryJson, TileJson } from "./types";

export function Tiles({ model }: { model: Model }) {
  const { value, trouble } = model.data.summary;
  if (!value && trouble) return <section class="tiles" aria-label="the node"><Trouble small trouble={trouble} retry={() => model.data.requests.retry(model.data.summary)} /></section>;
  const tiles = value?.tiles ?? [];
  return (
    <section class="tiles" aria-label={value?.whose ? `${value.whose} of the filter` : "the node"}>
      {tiles.length === 0 && ["CPU", "memory", "pressure", "containers"].map((title) => <div class="tile" key={title}><span class="title">{title}</span><span class="faint">...</span></div>)}
      {value && tiles.map((tile) => <TileView key={tile.id} model={model} tile={tile} summary={value} />)}
    </section>
  );
}

const WAITS: Record<string, string> = { cpu: "CPU", memory: "memory", io: "I/O" };

function TileView({ model, tile, summary }: { model: Model; tile: TileJson; summary: SummaryJson }) {
  const said = spoken(tellTimes(tile.sentence, model.view.utc, summary.at));
  return (
    <div class={`tile ${tile.id}`} title={said}>
      <span class="title">{tile.resource ? `waiting for ${WAITS[tile.resource]}` : tile.title}{summary.whose && tile.id !== "containers" ? `, ${summary.whose}` : ""}</span>
      <span class={`figure ${isShort(tile) ? "harm" : ""}`}>{tile.id === "containers" ? tile.value ?? "not measured" : figureOf(tile)}</span>
      <span class="what faint">{whatOf(model, tile, summary)}</span>
      {tile.id === "containers"
        ? <span class="counts"><Count count={summary.restarts} word="restart" /><Count count={summary.oom_kills} word="OOM kill" /></span>
        : <Spark values={tile.spark} width={120} height={26} />}
      <span class="visually-hidden">{said}</span>
    </div>
  );
}

/** What the figure is: of which minute, whose, and the peak of the range where it is known. */
function whatOf(model: Model, tile: TileJson, summary: SummaryJson): string {
  const { utc } = model.view;
  const when = model.time.isLive ? "now" : `at ${minute(summary.at, utc)} ${zone(utc, summary.at)}`;
  if (tile.value === null || tile.id === "containers") return when;
  const whose = tile.whose ? `, ${shorten(brief(tile.whose), 20)}` : "";
  const { peak } = tile;
  if (!peak || peak.value === null) return `${when}${whose}`;
  const of = peak.whose && peak.whose !== tile.whose ? ` ${shorten(brief(peak.whose), 20)}` : "";
  const what = peak.resource === tile.resource ? "" : ` for ${WAITS[peak.resource]}`;
  return `${when}${whose}; peak ${quantity(peak.value, tile.unit).replace(" ", "\u00a0")}${what}${of}, ${[...new Set([minute(peak.from, utc), minute(peak.to, utc)])].join("-")}`;
}

/** From this share of the time on a whole node that waits is in trouble, whoever is the cause. */
const SHORT = 0.5;

function isShort(tile: TileJson): boolean {
  return tile.id === "pressure" && !tile.whose && tile.value !== null && tile.value >= SHORT;
}

/** "tasks wait for CPU 99.9 % of the time", of a node as a whole; empty where they do not wait long. */
export function tellShort(summary: SummaryJson | null): string {
  const tile = summary?.tiles.find(isShort);
  return tile?.resource ? `tasks wait for ${WAITS[tile.resource]} ${quantity(tile.value, tile.unit)} of the time` : "";
}

function figureOf(tile: TileJson): string {
  if (tile.value === null) return "not measured";
  if (tile.of === null || tile.unit === "ratio") return quantity(tile.value, tile.unit);
  return `${quantity(tile.value, tile.unit).replace(/ cores$/, "")} of ${quantity(tile.of, tile.unit)}`;
}

function Count({ count, word }: { count: number; word: string }) {
  return <span class={count > 0 ? "harm" : "faint"}>{count} {word}{count === 1 ? "" : "s"}</span>;
}
