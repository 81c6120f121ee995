/** Parts of the page that few open: loaded when the page is idle, at the latest when they are shown. */

import type { ComponentType } from "preact";
import { useEffect, useState } from "preact/hooks";

const AHEAD: (() => Promise<unknown>)[] = [];

/** All of them, once the first view is drawn: whoever opens one later may have lost the viewer. */
export function loadAhead(): void {
  const begin = () => AHEAD.forEach((load) => void load().catch(() => undefined));
  const whenIdle = () => ("requestIdleCallback" in window ? requestIdleCallback(begin, { timeout: 2000 }) : setTimeout(begin, 500));
  if (document.readyState === "complete") whenIdle();
  else addEventListener("load", whenIdle, { once: true });
}

/** A component in a file of its own; nothing is drawn until it is there, and a failure is told in its place. */
export function lazy<Props extends object>(load: () => Promise<ComponentType<Props>>): ComponentType<Props> {
  let loaded: ComponentType<Props> | null = null;
  const fetchPart = async () => {
    loaded ??= await load();
  };
  AHEAD.push(fetchPart);
  return function Lazy(props: Props) {
    const [, draw] = useState(0);
    const [failed, fail] = useState(false);
    useEffect(() => {
      if (loaded) return;
      fetchPart().then(
        () => draw((count) => count + 1),
        () => fail(true),
      );
    }, []);
    if (failed) return <p class="state small" role="alert">This part of the page could not be loaded. Is the viewer still running? Reload the page to try again.</p>;
    const Found = loaded;
    return Found ? <Found {...props} /> : <p class="state small faint" role="status">loading ...</p>;
  };
}
