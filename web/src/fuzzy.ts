/** Subsequence search: every letter in order; runs, word starts and early hits count more. */

export interface Match {
  score: number;
  /** Places of the letters that matched, for marking them. */
  at: number[];
}

const BREAKS = new Set(["/", "-", "_", ".", " ", ":"]);

export function match(query: string, text: string): Match | null {
  const wanted = query.toLowerCase().replaceAll(" ", "");
  if (!wanted) return { score: 0, at: [] };
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const starts = whole === 0 || BREAKS.has(lower[whole - 1] ?? "");
    return {
      score: 1000 + (starts ? 200 : 0) - Math.min(whole, 100) - Math.min(text.length, 100) / 10,
      at: Array.from(wanted, (_, index) => whole + index),
    };
  }
  const at: number[] = [];
  let score = 0;
  let from = 0;
  for (const letter of wanted) {
    const place = lower.indexOf(letter, from);
    if (place < 0) return null;
    const run = at.length > 0 && place === (at[at.length - 1] ?? -2) + 1;
    score += run ? 8 : place === 0 || BREAKS.has(lower[place - 1] ?? "") ? 6 : 1;
    at.push(place);
    from = place + 1;
  }
  const spread = (at[at.length - 1] ?? 0) - (at[0] ?? 0);
  return { score: score - spread / 4, at };
}

/** The best first; what scores alike keeps its order. */
export function search<T>(query: string, items: readonly T[], text: (item: T) => string): T[] {
  if (!query.trim()) return [...items];
  return items
    .map((item, order) => ({ item, order, found: match(query, text(item)) }))
    .filter((row) => row.found !== null)
    .sort((a, b) => (b.found?.score ?? 0) - (a.found?.score ?? 0) || a.order - b.order)
    .map((row) => row.item);
}
