/**
 * Colours of series: twelve, as far from each other as a search found them to normal and to
 * colour-blind eyes, each with a contrast of 4.5 on its background. Red is kept for harm.
 * The colour follows from the container's name alone: it is the same in every panel, tab and
 * browser, after a restart, and whoever is drawn beside it. Two of one colour are told apart by dashes.
 */

export const LIGHT = ["#866f2c", "#5b5c15", "#374300", "#065939", "#007671", "#2a75ba", "#00348f", "#644395", "#9256a0", "#5f0d6f", "#603968", "#6b1346"] as const;
export const DARK = ["#facb39", "#babd78", "#7c9128", "#6ab08b", "#9bf8f2", "#42a3fd", "#4983e5", "#c0abe9", "#ecbef6", "#af62c1", "#b88cc1", "#af6f8e"] as const;
export const DASHES: readonly number[][] = [[6, 3], [2, 3], [8, 3, 2, 3]];

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

export class Palette {
  private readonly dashes = new Map<string, number[]>();

  ink(key: string): Ink {
    return { slot: hash(key) % LIGHT.length, dash: this.dashes.get(key) ?? [] };
  }

  inkOf(series: { id: string; name: string }): Ink {
    return this.ink(colourKey(series));
  }

  /** Of those that are drawn together and have one colour, all but one are dashed: which one follows from the names alone. */
  arrange(drawn: Iterable<{ id: string; name: string }>): void {
    const keys = [...new Set([...drawn].map(colourKey))].sort((one, other) => hash(one) - hash(other));
    const used = new Map<number, number>();
    this.dashes.clear();
    for (const key of keys) {
      const { slot } = this.ink(key);
      const before = used.get(slot) ?? 0;
      used.set(slot, before + 1);
      if (before) this.dashes.set(key, DASHES[(before - 1) % DASHES.length] ?? []);
    }
  }
}

/** A container that was restarted has a new id and the old name: the name gives the colour. */
export function colourKey(series: { id: string; name: string }): string {
  return series.name.includes("/") ? series.name : series.id;
}
