/** Fuzzy search: all letters in order; consecutive letters, starts of words and early hits score more. */

const BREAKS = new Set(["/", "-", "_", ".", " ", ":"]);

/** The score of a text; null when it does not match. */
export function match(query: string, text: string): number | null {
  const wanted = query.toLowerCase().replaceAll(" ", "");
  if (!wanted) return 0;
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const starts = whole === 0 || BREAKS.has(lower[whole - 1] ?? "");
    return 1000 + (starts ? 200 : 0) - Math.min(whole, 100) - Math.min(text.length, 100) / 10;
  }
  let score = 0;
  let first = -1;
  let last = -1;
  for (const letter of wanted) {
    const place = lower.indexOf(letter, last + 1);
    if (place < 0) return null;
    const run = first >= 0 && place === last + 1;
    score += run ? 8 : place === 0 || BREAKS.has(lower[place - 1] ?? "") ? 6 : 1;
    if (first < 0) first = place;
    last = place;
  }
  return score - (last - first) / 4;
}

/** The best first; items of equal score keep their order. */
export function search<T>(query: string, items: readonly T[], text: (item: T) => string): T[] {
  if (!query.trim()) return [...items];
  return items
    .map((item, order) => ({ item, order, score: match(query, text(item)) }))
    .filter((row) => row.score !== null)
    .sort((a, b) => (b.score ?? 0) - (a.score ?? 0) || a.order - b.order)
    .map((row) => row.item);
}
