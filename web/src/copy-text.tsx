/** A text to read or to copy, and whether the browser let the page copy it. */

import { useState } from "preact/hooks";

export function CopyText({ name, text }: { name: string; text: string }) {
  const [told, tell] = useState("");
  // The clipboard is missing where the page was not loaded over TLS or from loopback: then this is refused as well.
  const copy = (): Promise<void> =>
    Promise.resolve().then(() => navigator.clipboard.writeText(text)).then(
      () => tell("copied"),
      () => tell("the browser did not let the page copy; select the text instead"),
    );
  return (
    <div class="copy">
      <div><button type="button" onClick={() => void copy()}>{name}</button><p class="faint" role="status">{told}</p></div>
      <pre tabIndex={0}>{text}</pre>
    </div>
  );
}
