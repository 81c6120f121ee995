/** The four tiles at the top: CPU, memory, pressure and containers of the node. */

import { quantity } from "./format";
import type { Model } from "./model";
import { Spark } from "./spark";
import { Trouble } from "./states";
import type { TileJson } from "./types";

export function Tiles({ model }: { model: Model }) {
  const { value, trouble } = model.data.summary;
  if (!value && trouble) return <section class="tiles" aria-label="the node"><Trouble small trouble={trouble} retry={() => model.data.requests.retry(model.data.summary)} /></section>;
  const tiles = value?.tiles ?? [];
  return (
    <section class="tiles" aria-label="the node">
      {tiles.length === 0 && ["CPU", "memory", "pressure", "containers"].map((title) => <div class="tile" key={title}><span class="title">{title}</span><span class="faint">...</span></div>)}
      {tiles.map((tile) => <TileView key={tile.id} tile={tile} restarts={value?.restarts ?? 0} kills={value?.oom_kills ?? 0} />)}
    </section>
  );
}

function TileView({ tile, restarts, kills }: { tile: TileJson; restarts: number; kills: number }) {
  return (
    <div class="tile" title={tile.sentence}>
      <span class="title">{tile.title}{tile.resource ? `, ${tile.resource}` : ""}</span>
      <span class="figure">{tile.id === "containers" ? tile.value ?? "not measured" : figureOf(tile)}</span>
      {tile.id === "containers"
        ? <span class="counts"><Count count={restarts} word="restart" /><Count count={kills} word="OOM kill" /></span>
        : <Spark values={tile.spark} width={120} height={26} />}
      <span class="visually-hidden">{tile.sentence}</span>
    </div>
  );
}

function figureOf(tile: TileJson): string {
  if (tile.value === null) return "not measured";
  if (tile.of === null || tile.unit === "ratio") return quantity(tile.value, tile.unit);
  return `${quantity(tile.value, tile.unit).replace(/ cores$/, "")} of ${quantity(tile.of, tile.unit)}`;
}

function Count({ count, word }: { count: number; word: string }) {
  return <span class={count > 0 ? "harm" : "faint"}>{count} {word}{count === 1 ? "" : "s"}</span>;
}
