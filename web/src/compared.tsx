/** What differs between the range that is drawn and as long a one before it: one sentence, when somebody asks. */

import { useState } from "preact/hooks";
import { Failure } from "./api";
import { spoken } from "./format";
import type { Model } from "./model";

interface Said {
  /** Of which question: the answer goes when another range or container is looked at. */
  key: string;
  text: string;
  rest: string[];
}

export function Compared({ model }: { model: Model }) {
  const [said, setSaid] = useState<Said | null>(null);
  const { span } = model.time;
  const workload = onlyWorkload(model);
  const key = JSON.stringify([model.view.node, workload, Math.round(span.from), Math.round(span.to)]);
  if (model.source.offline) return null;
  const ask = async (): Promise<void> => {
    setSaid({ key, text: "comparing ...", rest: [] });
    try {
      const answer = await model.source.compare(span, workload);
      setSaid({ key, text: answer.sentence, rest: answer.differences.slice(1, 6).map((one) => one.sentence) });
    } catch (error) {
      setSaid({ key, text: error instanceof Failure ? `${error.title}: ${error.detail}` : String(error), rest: [] });
    }
  };
  return (
    <div class="compared">
      <button type="button" class="plain" onClick={() => void ask()}>compare with the same time before</button>
      {said?.key === key && <p role="status">{spoken(said.text)}</p>}
      {said?.key === key && said.rest.map((line) => <p key={line} class="faint">{spoken(line)}</p>)}
    </div>
  );
}

/** The workload of the containers that are chosen, where it is one; else all are compared. */
export function onlyWorkload(model: Model): string {
  const chosen = (model.data.containers.value?.containers ?? []).filter((row) => model.view.containers.includes(row.short_id));
  const names = new Set(chosen.map((row) => row.workload));
  return names.size === 1 ? [...names][0] ?? "" : "";
}
