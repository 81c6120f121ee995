/** Which containers and which of their series are drawn. */

import type { Address } from "./address";
import { colourKey } from "./colour";
import type { Signal } from "./signal";
import type { Span } from "./time";
import type { ContainerJson } from "./types";

type Identity = { id: string; name: string };

const CONTAINERS_AT_MOST = 16;

export class Selection {
  /** The colour key of the one series that is shown alone. */
  isolated = "";

  constructor(
    private readonly address: Address,
    private readonly changed: Signal<void>,
    private readonly say: (text: string, harm?: boolean) => void,
  ) {}

  /** A row stands for all runs of its container: they are chosen and left together. */
  toggle(row: ContainerJson, all: ContainerJson[], span: Span): void {
    const chosen = this.address.view.containers;
    const runs = runsOf(row, all, span);
    const others = chosen.filter((one) => !runs.includes(one));
    const next = chosen.includes(row.short_id) ? others : [...others, ...runs];
    if (next.length > CONTAINERS_AT_MOST) this.say("Sixteen containers are the most in one picture. Remove one first.", true);
    else this.address.change({ containers: next });
  }

  /** All containers of a workload: chosen together, as many as one picture takes, and left together. */
  toggleAll(rows: ContainerJson[]): void {
    const ids = rows.map((row) => row.short_id);
    const chosen = this.address.view.containers;
    const others = chosen.filter((one) => !ids.includes(one));
    const isChosen = others.length < chosen.length;
    this.address.change({ containers: isChosen ? others : [...others, ...ids].slice(-CONTAINERS_AT_MOST) });
  }

  /** None chosen: the busiest are drawn. */
  clear(): void {
    this.address.change({ containers: [], hidden: [] });
  }

  isShown(series: Identity): boolean {
    return !this.address.view.hidden.includes(series.id.slice(0, 12)) && (!this.isolated || this.isolated === colourKey(series));
  }

  toggleSeries(id: string): void {
    const short = id.slice(0, 12);
    const hidden = this.address.view.hidden;
    this.address.change({ hidden: hidden.includes(short) ? hidden.filter((one) => one !== short) : [...hidden, short] }, false);
  }

  /** This series alone; once more: all of them again. */
  isolate(key: string): void {
    this.isolated = this.isolated === key ? "" : key;
    this.changed.send();
  }
}

/** The container and its two longest other runs that fill more than a twentieth of the span. */
export function runsOf(row: ContainerJson, all: ContainerJson[], { from, to }: Span): string[] {
  const seen = (one: ContainerJson): number => Math.min(one.last_seen, to) - Math.max(one.first_seen, from);
  const others = all.filter((one) => one !== row && nameOf(one) === nameOf(row) && seen(one) > 0.05 * (to - from));
  return [row, ...others.sort((a, b) => seen(b) - seen(a)).slice(0, 2)].map((one) => one.short_id);
}

/** Of each container the newest run, in the order of the list. */
export function newestRuns(all: ContainerJson[]): ContainerJson[] {
  const newest = new Map<string, ContainerJson>();
  for (const row of all) {
    const had = newest.get(nameOf(row));
    if (!had || row.last_seen > had.last_seen) newest.set(nameOf(row), row);
  }
  return all.filter((row) => newest.get(nameOf(row)) === row);
}

function nameOf(row: ContainerJson): string {
  return `${row.namespace}/${row.name}`;
}
