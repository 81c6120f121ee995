/** A sparkline. The text beside it says the same, so it is hidden from screen readers. */

import type { Value } from "./series";

export function sparkPath(values: readonly Value[], width: number, height: number): string {
  const known = values.filter((value): value is number => value !== null && Number.isFinite(value));
  if (known.length < 2) return "";
  const high = Math.max(...known);
  const low = Math.min(0, ...known);
  const scale = high > low ? (height - 2) / (high - low) : 0;
  let path = "";
  let pen = "M";
  values.forEach((value, place) => {
    if (value === null || !Number.isFinite(value)) {
      pen = "M";
      return;
    }
    const x = ((place / Math.max(values.length - 1, 1)) * width).toFixed(1);
    path += `${pen}${x} ${(height - 1 - (value - low) * scale).toFixed(1)}`;
    pen = "L";
  });
  return path;
}

export function Spark({ values, width = 64, height = 18, colour }: { values: readonly Value[]; width?: number; height?: number; colour?: string }) {
  return (
    <svg class="spark" width={width} height={height} viewBox={`0 0 ${width} ${height}`} aria-hidden="true" preserveAspectRatio="none">
      <path d={sparkPath(values, width, height)} fill="none" stroke={colour ?? "currentColor"} stroke-width="1.25" vector-effect="non-scaling-stroke" />
    </svg>
  );
}
