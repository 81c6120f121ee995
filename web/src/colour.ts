/**
 * Colours of series: eight that colour-blind people can tell apart (after Okabe and Ito, darkened
 * or lightened until each has a contrast of 4.5 on its background). Red is kept for harm.
 * A container has the same colour in every panel and after a restart; from the ninth series on
 * the colours are used again, with dashes.
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
  return value;
}

export class Palette {
  private readonly given = new Map<string, number>();

  /** order: numbers that were given before. */
  constructor(order: Iterable<[string, number]> = []) {
    for (const [key, number] of order) if (Number.isInteger(number) && number >= 0) this.given.set(key, number);
  }

  ink(key: string): Ink {
    let number = this.given.get(key);
    if (number === undefined) {
      number = this.choose(key);
      this.given.set(key, number);
    }
    return { slot: number % 8, dash: DASHES[Math.floor(number / 8) % DASHES.length] ?? [] };
  }

  inkOf(series: { id: string; name: string }): Ink {
    return this.ink(colourKey(series));
  }

  clear(): void {
    this.given.clear();
  }

  entries(): [string, number][] {
    return [...this.given];
  }

  /** The colour that follows from its name, or the next free one of the same round. */
  private choose(key: string): number {
    const taken = new Set(this.given.values());
    const preferred = hash(key) % 8;
    for (let round = 0; ; round += 1) {
      for (let step = 0; step < 8; step += 1) {
        const number = round * 8 + ((preferred + step) % 8);
        if (!taken.has(number)) return number;
      }
    }
  }
}

/** A container that was restarted has a new id and the old name: the name gives the colour. */
export function colourKey(series: { id: string; name: string }): string {
  return series.name.includes("/") ? series.name : series.id;
}

const STORED = "nodescope-colours";

/** The colours given earlier in this visit, so that a reload gives the same. */
export function loadPalette(page: Window): Palette {
  try {
    return new Palette(JSON.parse(page.sessionStorage.getItem(STORED) ?? "[]") as [string, number][]);
  } catch {
    return new Palette();
  }
}

export function savePalette(palette: Palette, page: Window): void {
  try {
    page.sessionStorage.setItem(STORED, JSON.stringify(palette.entries().slice(-500)));
  } catch {
    // A page from disk may have no storage; the colours then hold until it is closed.
  }
}
