/** From a value to the colour of its cell: blue for use, red from where it hurts, so that red is only for harm. */

export interface Scale {
  full: number;
  harm: number;
}

type Rgb = readonly [number, number, number];

interface Ramp {
  use: readonly string[];
  harm: readonly string[];
}

/** Few steps: two cells of nearly the same value look the same, and a legend can show all of them. */
const STEPS = 6;

function mix(from: Rgb, to: Rgb): string[] {
  return Array.from({ length: STEPS }, (_, step) => `rgb(${from.map((one, place) => Math.round(one + (((to[place] ?? one) - one) * step) / (STEPS - 1))).join(" ")})`);
}

const LIGHT_RAMP: Ramp = { use: mix([236, 242, 248], [74, 144, 196]), harm: mix([222, 130, 122], [170, 32, 24]) };
const DARK_RAMP: Ramp = { use: mix([24, 34, 46], [76, 150, 208]), harm: mix([196, 84, 76], [255, 150, 140]) };

function pick(colours: readonly string[], share: number): string {
  return colours[Math.min(STEPS - 1, Math.max(0, Math.floor(share * STEPS)))] ?? "";
}

export function colourOf(value: number, scale: Scale, dark: boolean): string {
  const ramp = dark ? DARK_RAMP : LIGHT_RAMP;
  if (value >= scale.harm) return pick(ramp.harm, scale.full > scale.harm ? (value - scale.harm) / (scale.full - scale.harm) : 1);
  return pick(ramp.use, value / Math.min(scale.harm, scale.full));
}

export function isHarm(value: number | null, scale: Scale): boolean {
  return value !== null && value >= scale.harm;
}

/** What a legend shows: values from nothing to the end of the scale. */
export function legendSteps(scale: Scale): number[] {
  const use = [0, 1, 2, 3, 4, 5].map((step) => (step / 6) * Math.min(scale.harm, scale.full));
  return scale.harm > scale.full ? use : [...use, scale.harm, (scale.harm + scale.full) / 2, scale.full];
}
