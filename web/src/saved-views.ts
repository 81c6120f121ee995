/** Views that were saved under a name: kept in the browser, and written to a file and read from one. */

import { decode, encode } from "./view";

export interface SavedView {
  name: string;
  /** The part of the address behind #. */
  view: string;
}

export interface ViewStore {
  getItem(key: string): string | null;
  setItem(key: string, value: string): void;
}

const STORED = "nodescope-views";
const KEPT = 100;
const NAME_LETTERS = 80;
const VIEW_LETTERS = 20_000;
const SCHEMA = 1;

export function readViews(store: ViewStore | null): SavedView[] {
  try {
    return parseViews(store?.getItem(STORED) ?? "");
  } catch {
    return [];
  }
}

/** Throws with a sentence where the browser keeps nothing. */
export function writeViews(store: ViewStore | null, views: readonly SavedView[]): void {
  try {
    if (!store) throw new Error("no storage");
    store.setItem(STORED, renderViews(views.slice(-KEPT)));
  } catch {
    throw new Error("This browser keeps nothing for this page. Export the views as a file instead, or copy the address.");
  }
}

/** A view of the same name is replaced. */
export function withView(views: readonly SavedView[], one: SavedView): SavedView[] {
  return [...views.filter((other) => other.name !== one.name), one];
}

export function renderViews(views: readonly SavedView[]): string {
  return JSON.stringify({ schema_version: SCHEMA, views }, null, 2);
}

/** Refused with a sentence where it is not what was exported. What an address would not accept is left out of a view. */
export function parseViews(text: string): SavedView[] {
  if (!text.trim()) return [];
  let content: unknown;
  try {
    content = JSON.parse(text);
  } catch {
    throw new Error("This file is not JSON.");
  }
  const { schema_version: version, views } = (content ?? {}) as { schema_version?: unknown; views?: unknown };
  if (version !== SCHEMA || !Array.isArray(views)) throw new Error(`This file has no saved views: expected {"schema_version": ${SCHEMA}, "views": [{"name", "view"}]}.`);
  return views.slice(-KEPT).map((row: unknown) => {
    const { name, view } = (row ?? {}) as { name?: unknown; view?: unknown };
    if (typeof name !== "string" || !name.trim() || typeof view !== "string" || view.length > VIEW_LETTERS) throw new Error("A view of this file has no name, or no address.");
    return { name: name.trim().slice(0, NAME_LETTERS), view: encode(decode(view).view) };
  });
}

/** Storage that all tabs share; null where the browser refuses it. */
export function sharedStore(page: Window): ViewStore | null {
  try {
    return page.localStorage;
  } catch {
    return null;
  }
}
