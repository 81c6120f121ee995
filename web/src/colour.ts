/**
 * Colours of series: eight that colour-blind people can tell apart (after Okabe and Ito, darkened
 * or lightened until each has a contrast of 4.5 on its background). Red is kept for harm.
 * A container has the same colour in every panel, in every tab and after a restart. Two of one
 * colour in one picture are told apart by dashes.
 */

export const LIGHT = ["#0067a8", "#9a5b00", "#00735a", "#a03c78", "#1d7a9c", "#6b5f00", "#5b4fb5", "#5a5f66"] as const;
export const DARK = ["#5fb4f0", "#f0a43a", "#3cc99f", "#e58fc1", "#7fd4f5", "#d9cf4a", "#aaa0ff", "#b4bac2"] as const;
export const DASHES: readonly number[][] = [[], [6, 3], [2, 3], [8, 3, 2, 3]];

export interface Ink {
  slot: number;
  dash: number[];
}

export function hash(text: string): number {
  let value = 2166136261;
  for (let index = 0; index < text.length; index += 1) {
    value = Math.imul(value ^ text.charCodeAt(index), 16777619) >>> 0;
  }
  // Names differ in a letter or two: all bits are mixed before the last ones choose a colour.
  value = Math.imul(value ^ (value >>> 16), 2246822507) >>> 0;
  value = Math.imul(value ^ (value >>> 13), 3266489909) >>> 0;
  return (value ^ (value >>> 16)) >>> 0;
}

/** Colours that were given, kept where every tab finds them. */
export interface ColourStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

const STORED = "nodescope-colours";
const KEPT = 500;

export class Palette {
  private given = new Map<string, number>();
  private readonly dashes = new Map<string, number[]>();

  constructor(private readonly store: ColourStore | null = null) {
    this.read();
  }

  ink(key: string): Ink {
    return { slot: this.given.get(key) ?? hash(key) % LIGHT.length, dash: this.dashes.get(key) ?? [] };
  }

  inkOf(series: { id: string; name: string }): Ink {
    return this.ink(colourKey(series));
  }

  /** Gives each its colour, once for all tabs; of those that are drawn together and have one colour, all but the first are dashed. */
  arrange(drawn: Iterable<{ id: string; name: string }>): void {
    const keys = [...new Set([...drawn].map(colourKey))];
    if (keys.some((key) => !this.given.has(key))) this.read();
    for (const key of keys) if (!this.given.has(key)) this.given.set(key, this.choose(key, keys));
    const used = new Map<number, number>();
    this.dashes.clear();
    for (const key of keys) {
      const { slot } = this.ink(key);
      const before = used.get(slot) ?? 0;
      used.set(slot, before + 1);
      this.dashes.set(key, DASHES[before % DASHES.length] ?? []);
    }
    this.write();
  }

  /** The colour that follows from its name, or the next one that fewer of the drawn have. */
  private choose(key: string, drawn: string[]): number {
    const counts = new Array<number>(LIGHT.length).fill(0);
    for (const slot of drawn.map((one) => this.given.get(one))) if (slot !== undefined) counts[slot] = (counts[slot] ?? 0) + 1;
    const least = Math.min(...counts);
    const preferred = hash(key) % LIGHT.length;
    const turns = counts.map((_, step) => (preferred + step) % LIGHT.length);
    return turns.find((slot) => counts[slot] === least) ?? preferred;
  }

  /** What another tab gave counts: a container has one colour in all of them. */
  private read(): void {
    try {
      const rows = JSON.parse(this.store?.getItem(STORED) ?? "[]") as [string, number][];
      for (const [key, slot] of rows) if (Number.isInteger(slot) && slot >= 0 && slot < LIGHT.length) this.given.set(key, slot);
    } catch {
      // What cannot be read is given anew.
    }
  }

  private write(): void {
    try {
      this.store?.setItem(STORED, JSON.stringify([...this.given].slice(-KEPT)));
    } catch {
      // A page from disk may have no storage; the colours then hold until it is closed.
    }
  }
}

/** Storage that all tabs share; null where the browser refuses it. */
export function sharedStore(page: Window): ColourStore | null {
  try {
    return page.localStorage;
  } catch {
    return null;
  }
}

/** A container that was restarted has a new id and the old name: the name gives the colour. */
export function colourKey(series: { id: string; name: string }): string {
  return series.name.includes("/") ? series.name : series.id;
}
