/** Numbers, names and units as text for people. */

const BINARY = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
const DECIMAL: [number, string][] = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** Three significant digits by default, no exponent, no trailing zeros. */
export function figure(value: number, significant = 3): string {
  if (value === 0) return "0";
  const size = Math.abs(value);
  const digits = significant - 1 - Math.floor(Math.log10(size));
  return String(Number(value.toFixed(Math.min(Math.max(digits, 0), 6))));
}

function binary(value: number, significant: number): string {
  let step = 0;
  let left = Math.abs(value);
  while (left >= 1024 && step < BINARY.length - 1) {
    left /= 1024;
    step += 1;
  }
  // 1023.9 KiB is rounded to 1024, which is 1 MiB.
  if (Number(figure(left)) >= 1024 && step < BINARY.length - 1) {
    left /= 1024;
    step += 1;
  }
  return `${value < 0 ? "-" : ""}${figure(left, significant)} ${BINARY[step]}`;
}

function decimal(value: number, unit: string, significant: number): string {
  for (const [size, prefix] of DECIMAL) {
    if (Math.abs(value) >= size) return `${figure(value / size, significant)} ${prefix}${unit}`.trim();
  }
  return `${figure(value, significant)} ${unit}`.trim();
}

export function quantity(value: number | null | undefined, unit: string, significant = 3): string {
  if (value === null || value === undefined) return "not measured";
  if (value === Infinity) return "unlimited";
  if (!Number.isFinite(value)) return "not measured";
  switch (unit) {
    case "bytes":
      return binary(value, significant);
    case "bytes/s":
      return `${binary(value, significant)}/s`;
    case "ratio":
      return `${figure(value * 100, significant)} %`;
    case "percent":
      return `${figure(value, significant)} %`;
    case "cores":
      return `${figure(value, significant)} cores`;
    case "seconds":
      return Math.abs(value) < 1 && value !== 0 ? `${figure(value * 1000, significant)} ms` : `${figure(value, significant)} s`;
    case "count":
      return decimal(value, "", significant);
    case "celsius":
      return `${figure(value, significant)} °C`;
    case "watts":
      return decimal(value, "W", significant);
    case "hertz":
      return decimal(value, "Hz", significant);
    default:
      return decimal(value, unit, significant);
  }
}

/** The exact value, for a title or a hover. */
export function exact(value: number | null, unit: string): string {
  return value === null ? "not measured" : `${value} ${unit}`;
}

const UNIT_WORDS: Record<string, string> = {
  bytes: "bytes",
  "bytes/s": "bytes per second",
  ratio: "share, in percent",
  percent: "percent",
  cores: "cores",
  count: "count",
  celsius: "degrees Celsius",
};

export function unitWords(unit: string): string {
  return UNIT_WORDS[unit] ?? unit;
}

// Units that are short, or that are scaled with the value: an axis repeats them.
const SIGNED = new Set(["bytes", "bytes/s", "ratio", "percent", "seconds", "celsius", "watts", "hertz"]);

const AXIS_DIGITS = [3, 4, 5, 6, 7, 8, 9];

/**
 * The labels of a y axis. The panel's title names the unit, so only short and scaled units are
 * repeated. As many digits as are needed to tell two labels apart.
 */
export function axisFigures(values: readonly number[], unit: string): string[] {
  const write = (digits: number): string[] => values.map((value) => (SIGNED.has(unit) ? quantity(value, unit, digits) : decimal(value, "", digits)));
  const digits = AXIS_DIGITS.find((one) => new Set(write(one)).size === values.length);
  return write(digits ?? 3);
}

/** The steps between two ticks of a y axis: powers of two for bytes, 1-2-5 for the rest. */
export function axisSteps(unit: string): number[] {
  const steps: number[] = [];
  if (unit.startsWith("bytes")) {
    for (let power = 0; power < 56; power += 1) steps.push(2 ** power);
    return steps;
  }
  for (let exponent = -9; exponent <= 15; exponent += 1) {
    for (const lead of [1, 2, 5]) steps.push(Number(`${lead}e${exponent}`));
  }
  return steps;
}

const CONFIDENCE: [number, string][] = [[0.99, "certain"], [0.95, "very likely"], [0.8, "likely"], [0.5, "possible"]];

export function confidence(share: number): string {
  const word = CONFIDENCE.find(([least]) => share >= least)?.[1] ?? "weak";
  const percent = share >= 0.99 ? (Math.floor(share * 1000) / 10).toFixed(1) : String(Math.floor(share * 100 + 1e-9));
  return `${word}, ${percent} %`;
}

/** A metric's plain name as words: "cpu_throttled" to "cpu throttled". */
export function words(metric: string): string {
  return metric.includes(".") ? metric : metric.replaceAll("_", " ");
}

// What a Deployment or a DaemonSet adds to its pods' names.
const POD_TAIL = /-(?:[0-9a-f]{8,10}-[0-9a-z]{5}|[bcdf-hj-np-tv-z2-9]{5})$/;

/** "api-5ab43138c-8880a/api" to "api"; the tooltip has the whole name, and search finds it. */
export function brief(name: string): string {
  const cut = name.lastIndexOf("/");
  if (cut < 0) return name;
  const workload = name.slice(0, cut).replace(POD_TAIL, "");
  const container = name.slice(cut + 1);
  return workload === container ? container : `${workload}/${container}`;
}

/** Cuts a text in the middle: names are untrusted and may have a kilobyte. */
export function shorten(text: string, most: number): string {
  const points = [...text];
  if (points.length <= most) return text;
  const head = Math.ceil((most - 1) * 0.6);
  return `${points.slice(0, head).join("")}…${points.slice(points.length - (most - 1 - head)).join("")}`;
}

// Invisible control characters: with them a name could change how the text beside it is shown.
const STEERING = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

export function plain(text: string): string {
  return text.replace(STEERING, "�");
}

const WORD_MOST = 80;

/** A sentence of the server's: names in it are cut like names elsewhere. */
export function spoken(text: string): string {
  return plain(text).replace(/\S+/g, (word) => shorten(word, WORD_MOST));
}
