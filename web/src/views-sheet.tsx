/** Saved views: save this one, open, delete, write to a file, read from one. */

import { useState } from "preact/hooks";
import { save } from "./export";
import { plain, shorten } from "./format";
import type { Model } from "./model";
import { parseViews, readViews, renderViews, sharedStore, withView, writeViews, type SavedView } from "./saved-views";
import { encode } from "./view";

export function ViewsSheet({ model }: { model: Model }) {
  const store = sharedStore(window);
  const [views, setViews] = useState(() => readViews(store));
  const [name, setName] = useState("");
  const [said, say] = useState("");
  const keep = (next: SavedView[], words: string): void => {
    setViews(next);
    try {
      writeViews(store, next);
      say(words);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  const add = (event: Event): void => {
    event.preventDefault();
    if (!name.trim()) return say("A view needs a name.");
    keep(withView(views, { name: name.trim(), view: encode(model.view) }), `Saved as “${shorten(name.trim(), 40)}”.`);
    setName("");
  };
  const read = async (file: File | undefined): Promise<void> => {
    if (!file) return;
    try {
      const found = parseViews(await file.text());
      keep(found.reduce(withView, views), `${found.length} view${found.length === 1 ? "" : "s"} read from ${shorten(file.name, 40)}.`);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
    }
  };
  return (
    <div class="views">
      <form onSubmit={add}><label>save this view as <input value={name} maxLength={80} onInput={(event) => setName(event.currentTarget.value)} /></label> <button type="submit">save</button></form>
      <p role="status" class="faint">{said}</p>
      {views.length === 0 && <p>Nothing is saved in this browser yet. A saved view has everything that the address has: range, panels, containers, filters, thresholds.</p>}
      <ul>
        {views.map((one) => (
          <li key={one.name}>
            <a href={`#${one.view}`} onClick={() => model.openSheet("")}>{plain(shorten(one.name, 60))}</a>
            <button type="button" class="plain" aria-label={`delete the view ${plain(one.name)}`} onClick={() => keep(views.filter((other) => other !== one), "Deleted.")}>delete</button>
          </li>
        ))}
      </ul>
      <p class="buttons">
        <button type="button" disabled={views.length === 0} onClick={() => save("nodescope-views.json", new Blob([renderViews(views)], { type: "application/json" }))}>export as a file</button>
        <label class="button">import a file<input type="file" accept="application/json,.json" class="visually-hidden" onChange={(event) => void read(event.currentTarget.files?.[0])} /></label>
      </p>
    </div>
  );
}
