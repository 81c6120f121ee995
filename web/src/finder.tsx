/** A search field and the list of its hits: arrow keys move, Enter chooses, Esc clears. */

import { useId, useState } from "preact/hooks";
import { search } from "./fuzzy";
import { shorten } from "./format";

export interface Item {
  key: string;
  group: string;
  name: string;
  more: string;
  pick(): void;
}

const HITS = 12;

interface Props {
  id: string;
  label: string;
  placeholder: string;
  items: Item[];
  /** In a sheet: the hits are shown without a query as well. */
  open?: boolean;
  done?: () => void;
}

export function Finder({ id, label, placeholder, items, open = false, done }: Props) {
  const [text, setText] = useState("");
  const [place, setPlace] = useState(0);
  const [focused, setFocused] = useState(false);
  const list = useId();
  const shown = open || (focused && text.trim() !== "");
  const hits = shown ? search(text, items, (item) => `${item.name} ${item.more}`).slice(0, open ? 60 : HITS) : [];
  const take = (item: Item | undefined): void => {
    if (!item) return;
    setText("");
    setPlace(0);
    done?.();
    item.pick();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && hits.length) {
      event.preventDefault();
      setPlace((place + step + hits.length) % hits.length);
    } else if (event.key === "Enter") {
      event.preventDefault();
      take(hits[place]);
    } else if (event.key === "Escape" && text && !open) {
      event.preventDefault();
      setText("");
    }
  };
  return (
    <div class={`finder ${open ? "open" : ""}`} onFocusCapture={() => setFocused(true)} onBlurCapture={(event) => setFocused(event.currentTarget.contains(event.relatedTarget as Node | null))}>
      <input
        id={id} type="search" list={undefined} role="combobox" aria-label={label} aria-expanded={shown} aria-controls={list} aria-autocomplete="list"
        aria-activedescendant={hits[place] ? `${list}-${place}` : ""} autocomplete="off" spellcheck={false} placeholder={placeholder} value={text} maxLength={200}
        onInput={(event) => { setText(event.currentTarget.value); setPlace(0); }} onKeyDown={onKeyDown}
      />
      {shown && (
        <ul id={list} role="listbox" aria-label={label} class="hits">
          {hits.length === 0 && <li class="faint none">nothing here is called “{shorten(text, 40)}”</li>}
          {hits.map((item, index) => (
            <li key={item.key} id={`${list}-${index}`} role="option" aria-selected={index === place} class={index === place ? "at" : ""}
              ref={(node) => { if (index === place && node && open) node.scrollIntoView({ block: "nearest" }); }}
              onPointerDown={(event) => { event.preventDefault(); take(item); }} onPointerMove={() => { if (index !== place) setPlace(index); }}>
              <span class="group">{item.group}</span>
              <bdi class="name">{shorten(item.name, 60)}</bdi>
              <span class="faint more">{shorten(item.more, 80)}</span>
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
