/** Right-sizing as rows of a table: what is set now, what is recommended, and what that saves. */

import { plain, quantity, shorten } from "./format";
import { moment, zone } from "./time";
import type { SizeAdviceJson, SizesJson } from "./types";

export interface SizeCell {
  now: string;
  /** Empty where nothing is to be changed. */
  then: string;
}

export interface SizeRow {
  key: string;
  workload: string;
  container: string;
  replicas: string;
  cells: SizeCell[];
  savedCores: string;
  savedMemory: string;
  /** The risk of a change, or why there is none to make. */
  note: string;
  waits: boolean;
}

type Size = keyof SizesJson;

export const SIZES: readonly { size: Size; title: string; unit: string }[] = [
  { size: "cpu_request", title: "CPU request", unit: "cores" },
  { size: "cpu_limit", title: "CPU limit", unit: "cores" },
  { size: "memory_request", title: "memory request", unit: "bytes" },
  { size: "memory_limit", title: "memory limit", unit: "bytes" },
];

const NAME_AT_MOST = 64;

export function makeSizeRow(advice: SizeAdviceJson, utc: boolean): SizeRow {
  const full = advice.namespace ? `${advice.namespace}/${advice.workload}` : advice.workload;
  return {
    key: JSON.stringify([advice.namespace, advice.workload, advice.container]),
    workload: plain(shorten(full, NAME_AT_MOST)),
    container: plain(shorten(advice.container, NAME_AT_MOST)),
    replicas: `${advice.replicas} replica${advice.replicas === 1 ? "" : "s"}`,
    cells: SIZES.map(({ size, unit }) => makeCell(advice, size, unit)),
    savedCores: saved(advice, "cpu_request", advice.saved_cores, "cores"),
    savedMemory: saved(advice, "memory_request", advice.saved_bytes, "bytes"),
    note: note(advice, utc),
    waits: advice.state === "not_yet",
  };
}

function makeCell(advice: SizeAdviceJson, size: Size, unit: string): SizeCell {
  const value = advice.now[size];
  const then = advice.state === "sized" ? advice[size] : null;
  return { now: value === null ? missing(advice, size) : quantity(value, unit), then: then === null ? "" : quantity(then, unit) };
}

/** Limits are read from the cgroup. A request is only in the pod's specification, which may not have been read. */
function missing(advice: SizeAdviceJson, size: Size): string {
  return size.endsWith("request") && !advice.specified ? "not known" : "none";
}

function saved(advice: SizeAdviceJson, size: Size, value: number | null, unit: string): string {
  if (advice.state !== "sized") return "";
  if (value === null) return advice[size] === null ? "not measured" : advice.specified ? "no request now" : "request not known";
  if (value < 0) return `needs ${quantity(-value, unit)} more`;
  return value === 0 ? "nothing" : quantity(value, unit);
}

function note(advice: SizeAdviceJson, utc: boolean): string {
  switch (advice.state) {
    case "sized":
      return plain(advice.risk);
    case "fits":
      return "fits as it is";
    case "not_yet":
      return `not yet: less than a day was seen; from ${moment(advice.ready, utc)} ${zone(utc, advice.ready)} on it can be said`;
    case "not_measured":
      return "neither CPU nor memory was measured, so its size cannot be told";
  }
}
