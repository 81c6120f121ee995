/** Fuzzy search: all letters in order; consecutive letters, starts of words and early hits score more. */

/** A text that occurs as it is scores at least this much. */
const WHOLE_SCORE = 800;
const BREAKS = new Set(["/", "-", "_", ".", " ", ":"]);

/** The score of a text; null when it does not match. */
export function match(query: string, text: string): number | null {
  const wanted = query.toLowerCase().replaceAll(" ", "");
  if (!wanted) return 0;
  const lower = text.toLowerCase();
  const whole = lower.indexOf(wanted);
  if (whole >= 0) {
    const starts = whole === 0 || BREAKS.has(lower[whole - 1] ?? "");
    return WHOLE_SCORE + 200 + (starts ? 200 : 0) - Math.min(whole, 100) - Math.min(text.length, 100) / 10;
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
  return Math.min(score - (last - first) / 4, WHOLE_SCORE - 1);
}

/** The best first; items of equal score keep their order. */
export function search<T>(query: string, items: readonly T[], text: (item: T) => string): T[] {
  if (!query.trim()) return [...items];
  const rows = items.map((item, order) => ({ item, order, score: match(query, text(item)) }));
  // Letters in their order only where nobody has the text as it is.
  const least = rows.some((row) => (row.score ?? 0) >= WHOLE_SCORE) ? WHOLE_SCORE : -Infinity;
  return rows
    .filter((row) => row.score !== null && row.score >= least)
    .sort((a, b) => (b.score ?? 0) - (a.score ?? 0) || a.order - b.order)
    .map((row) => row.item);
}
