/** Which containers and which of their series are drawn. */

import type { Address } from "./address";
import { isOf, shortId } from "./series";
import type { ContainerJson, SeriesJson, TimeseriesJson } from "./types";

const CONTAINERS_AT_MOST = 16;

export class Selection {
  constructor(
    private readonly address: Address,
    private readonly say: (text: string, harm?: boolean) => void,
  ) {}

  isChosen(row: ContainerJson): boolean {
    return this.address.view.containers.some((one) => isOf(row, one));
  }

  /** A row stands for all lives of its container: an address may name any of them. */
  toggle(row: ContainerJson): void {
    const chosen = this.address.view.containers;
    const others = chosen.filter((one) => !isOf(row, one));
    const next = others.length < chosen.length ? others : [...others, row.short_id];
    if (next.length > CONTAINERS_AT_MOST) this.say("Sixteen containers are the most in one picture. Remove one first.", true);
    else this.choose(next);
  }

  /** All containers of a workload: chosen together, as many as one picture takes, and left together. */
  toggleAll(rows: ContainerJson[]): void {
    const chosen = this.address.view.containers;
    const others = chosen.filter((one) => !rows.some((row) => isOf(row, one)));
    const isChosen = others.length < chosen.length;
    this.choose(isChosen ? others : [...others, ...rows.map((row) => row.short_id)].slice(-CONTAINERS_AT_MOST));
  }

  /** None chosen: the busiest are drawn. */
  clear(): void {
    this.address.change({ containers: [], hidden: [], only: "", who: "" });
  }

  /** Which series of an answer are shown. What is shown alone leaves a panel as it is that does not have it. */
  shownIn(answer: TimeseriesJson | null): (series: SeriesJson) => boolean {
    const { hidden, only } = this.address.view;
    const isThere = only !== "" && (answer?.series ?? []).some((series) => isOf(series, only));
    return (series) => !hidden.some((one) => isOf(series, one)) && (!isThere || isOf(series, only));
  }

  toggleSeries(series: SeriesJson): void {
    const { hidden } = this.address.view;
    const others = hidden.filter((one) => !isOf(series, one));
    this.address.change({ hidden: others.length < hidden.length ? others : [...hidden, shortId(series.id)] }, false);
  }

  /** This series alone, in every panel; once more: all of them again. */
  isolate(series: SeriesJson): void {
    const { only } = this.address.view;
    this.address.change({ only: only && isOf(series, only) ? "" : shortId(series.id) }, false);
  }

  showAll(): void {
    this.address.change({ only: "" }, false);
  }

  private choose(containers: string[]): void {
    this.address.change({ containers, only: "", by: "", who: "" });
  }
}
