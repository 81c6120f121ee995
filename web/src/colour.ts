/**
 * Eight colours that survive colour blindness (after Okabe and Ito, darkened or
 * lightened until each has a contrast of 4.5 on its background). Red is left for harm.
 * The same container has the same colour in every panel and after a restart; from the
 * ninth on the colours come again with dashes.
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

  /** order: numbers given before, so that a reload gives the same. */
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

  clear(): void {
    this.given.clear();
  }

  entries(): [string, number][] {
    return [...this.given];
  }

  /** The colour its name asks for, or the next free one of the same round. */
  private choose(key: string): number {
    const taken = new Set(this.given.values());
    const wish = hash(key) % 8;
    for (let round = 0; ; round += 1) {
      for (let step = 0; step < 8; step += 1) {
        const number = round * 8 + ((wish + step) % 8);
        if (!taken.has(number)) return number;
      }
    }
  }
}

export function luminance(colour: string): number {
  const channel = (place: number): number => {
    const value = parseInt(colour.slice(place, place + 2), 16) / 255;
    return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return 0.2126 * channel(1) + 0.7152 * channel(3) + 0.0722 * channel(5);
}

export function contrast(one: string, other: string): number {
  const [high, low] = [luminance(one), luminance(other)].sort((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}
