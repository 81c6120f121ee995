/**
 * Dashboards as JSON, inline in the hash or from a URL of this origin:
 *
 *   {"schema_version": 1, "name": "...", "containers": {"namespace", "label_selector", "name_pattern", "ids"},
 *    "time_range": {"range": "1h"} or {"from", "to"}, "panels": [{"metric", "scope", "title"}], "study": "trend"}
 *
 * ${NAME} in any text is replaced by the parameter `name` of the hash. An unknown key is refused, and the message names it.
 */

import { parseLength, parseMoment, type Range } from "./time";
import { PANELS_AT_MOST, type PanelChoice, type View } from "./view";

export const SCHEMA_VERSION = 1;

export interface Dashboard {
  name: string;
  change: Partial<View>;
}

type Json = Record<string, unknown>;

const KEYS = ["schema_version", "name", "description", "containers", "time_range", "panels", "study"];

export async function readDashboard(text: string, variables: Record<string, string>, origin: string, fetchJson: (url: string) => Promise<unknown>): Promise<Dashboard> {
  const inline = text.trimStart().startsWith("{");
  const content = inline ? parseInline(text) : await fetchJson(sameOrigin(text, origin));
  return parseDashboard(fill(content, variables));
}

function parseInline(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`it is not JSON (${error instanceof Error ? error.message : "unreadable"})`);
  }
}

/** Refuses other origins: they could show anything as if it came from this viewer. */
export function sameOrigin(text: string, origin: string): string {
  const url = new URL(text, origin);
  if (url.origin !== origin) throw new Error(`${url.origin} is not this page's origin; accepted: a path here, or the JSON itself`);
  return url.pathname + url.search;
}

function fill(content: unknown, variables: Record<string, string>): unknown {
  if (typeof content === "string") {
    return content.replace(/\$\{([A-Za-z0-9_]+)\}/g, (_, name: string) => {
      const value = variables[name] ?? variables[name.toLowerCase()];
      if (value === undefined) throw new Error(`it asks for \${${name}}; add ${name.toLowerCase()}=... to the address`);
      return value;
    });
  }
  if (Array.isArray(content)) return content.map((one) => fill(one, variables));
  if (content && typeof content === "object") {
    return Object.fromEntries(Object.entries(content).map(([key, value]) => [key, fill(value, variables)]));
  }
  return content;
}

export function parseDashboard(content: unknown): Dashboard {
  const board = object(content, "the dashboard");
  for (const key of Object.keys(board)) if (!KEYS.includes(key)) throw new Error(`no key "${key}"; there are: ${KEYS.join(", ")}`);
  if (board["schema_version"] !== SCHEMA_VERSION) throw new Error(`schema_version is ${JSON.stringify(board["schema_version"])}; accepted: ${SCHEMA_VERSION}`);
  const panels = board["panels"];
  if (!Array.isArray(panels) || panels.length === 0) throw new Error("panels is missing; accepted: one to twelve of them");
  if (panels.length > PANELS_AT_MOST) throw new Error(`it has ${panels.length} panels; accepted: up to ${PANELS_AT_MOST}`);
  const change: Partial<View> = { panels: panels.map(parsePanel), focus: 0 };
  if (board["containers"] !== undefined) Object.assign(change, parseContainers(object(board["containers"], "containers")));
  if (board["time_range"] !== undefined) change.range = parseRange(object(board["time_range"], "time_range"));
  const study = board["study"] ?? panels.map((panel: Json) => panel["study"]).find((one) => one !== undefined);
  if (study !== undefined) change.study = typeof study === "string" ? study : word(object(study, "study"), "type");
  return { name: word(board, "name"), change };
}

function parsePanel(content: unknown): PanelChoice {
  const panel = object(content, "a panel");
  const metric = word(panel, "metric");
  if (!metric) throw new Error("a panel has no metric");
  return { metric, scope: word(panel, "scope"), title: word(panel, "title") };
}

function parseContainers(content: Json): Partial<View> {
  const ids = content["ids"];
  return {
    namespace: word(content, "namespace"),
    labels: word(content, "label_selector").replaceAll("=", ":"),
    search: word(content, "name_pattern").replaceAll("*", ""),
    containers: Array.isArray(ids) ? ids.map(String) : [],
  };
}

function parseRange(content: Json): Range | null {
  const [from, to] = [parseMoment(String(content["from"] ?? "")), parseMoment(String(content["to"] ?? ""))];
  if (from !== null && to !== null && to > from) return { from, to };
  const range = word(content, "range");
  if (range === "all" || content["mode"] === "from_containers") return { all: true };
  const last = parseLength(range);
  if (last === null) throw new Error(`time_range is ${JSON.stringify(content)}; accepted: {"range": "15m"}, {"range": "all"} or {"from", "to"}`);
  return { last };
}

function object(content: unknown, what: string): Json {
  if (!content || typeof content !== "object" || Array.isArray(content)) throw new Error(`${what} is not an object`);
  return content as Json;
}

function word(content: Json, key: string): string {
  const value = content[key];
  if (value === undefined || value === null) return "";
  if (typeof value !== "string") throw new Error(`${key} is not text`);
  return value;
}
