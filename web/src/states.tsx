/** A failed request: what failed, since when, and when it is tried again. */

import type { Trouble as TroubleOf } from "./requests";
import { now } from "./timers";
import { clock, duration, zone } from "./time";

/** Where a program finds what there is; a page has a search. */
const FOR_PROGRAMS = /; \/api\/\S+ lists all(?: \d+)?$/;

export function Trouble({ trouble, retry, small = false, way = null }: { trouble: TroubleOf; retry: () => void; small?: boolean; way?: { words: string; go: () => void } | null }) {
  const { failure, since, againAt } = trouble;
  const wait = Math.max(0, Math.ceil(againAt - now()));
  return (
    <div class={`state trouble ${small ? "small" : ""}`} role="alert">
      <p><strong>{failure.title}</strong>{failure.detail && `: ${failure.detail.replace(FOR_PROGRAMS, "")}`}</p>
      {failure.hint && <p>{failure.hint}</p>}
      <p class="faint">
        since {clock(since, false)} {zone(false, since)}{againAt > 0 && (wait > 0 ? `; tried again in ${duration(wait)}` : "; trying again now")}
      </p>
      <span class="ways"><button type="button" class="retry" onClick={retry}>retry now</button>{way && <button type="button" onClick={way.go}>{way.words}</button>}</span>
    </div>
  );
}
