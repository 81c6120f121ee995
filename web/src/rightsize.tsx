/** The sheet of right-sizing: what each workload should request and be limited to, what that saves, and the patch. */

import { CopyText } from "./copy-text";
import { plain, spoken } from "./format";
import type { Model } from "./model";
import { makeSizeRow, SIZES, type SizeCell, type SizeRow } from "./sizes";
import { Trouble } from "./states";
import { renderSpan } from "./time";
import { now } from "./timers";
import type { RightsizeJson } from "./types";

const ROWS_AT_MOST = 300;

export function Rightsize({ model }: { model: Model }) {
  const { sizes, requests } = model.data;
  return (
    <>
      {sizes.trouble && <Trouble trouble={sizes.trouble} retry={() => requests.retry(sizes)} />}
      {sizes.value ? <Answer answer={sizes.value} utc={model.view.utc} /> : !sizes.trouble && <Loading since={sizes.loadingSince} />}
    </>
  );
}

function Loading({ since }: { since: number }) {
  const seconds = since ? Math.floor(now() - since) : 0;
  return <p class="state loading" role="status">Reading the last seven days{seconds >= 2 ? `, for ${seconds} s now` : ""} ...</p>;
}

function Answer({ answer, utc }: { answer: RightsizeJson; utc: boolean }) {
  const { advice, nodes } = answer;
  const unseen = [...new Set(nodes.flatMap((node) => node.unseen))];
  const span = { from: Math.min(...nodes.map((node) => node.from)), to: Math.max(...nodes.map((node) => node.to)) };
  return (
    <>
      <p class="headline">{spoken(answer.sentence)}</p>
      {nodes.length > 0 && <p class="faint">From what was seen {renderSpan(span, utc)}, at most seven days, whatever range the panels show. Requests and limits are those of one replica, savings those of all.</p>}
      {unseen.map((line) => <p key={line} class="faint">Not seen: {plain(line)}.</p>)}
      {advice.length > 0
        ? <Table rows={advice.slice(0, ROWS_AT_MOST).map((one) => makeSizeRow(one, utc))} />
        : <p class="state">No container was recorded. One that runs from now on can be sized after a day.</p>}
      {advice.length > ROWS_AT_MOST && <p class="faint">{advice.length - ROWS_AT_MOST} more are not shown; <code>nodescope rightsize</code> lists them.</p>}
      {advice.some((one) => one.state === "sized") && <Patch text={answer.patch} />}
    </>
  );
}

function Table({ rows }: { rows: SizeRow[] }) {
  return (
    <div class="sizes" tabIndex={0} role="region" aria-label="recommended sizes">
      <table>
        <thead>
          <tr>
            <th scope="col">workload, container</th>
            {SIZES.map(({ title }) => <th key={title} scope="col" class="number">{title}</th>)}
            <th scope="col" class="number">saved cores</th><th scope="col" class="number">saved memory</th><th scope="col">risk, or why not</th>
          </tr>
        </thead>
        <tbody>{rows.map((row) => <Row key={row.key} row={row} />)}</tbody>
      </table>
    </div>
  );
}

function Row({ row }: { row: SizeRow }) {
  return (
    <tr class={row.waits ? "waits" : ""}>
      <th scope="row"><bdi>{row.workload}</bdi><span class="faint under"><bdi>{row.container}</bdi> · {row.replicas}</span></th>
      {row.cells.map((cell, place) => <Cell key={SIZES[place]?.size} cell={cell} />)}
      <td class="number saved">{row.savedCores}</td>
      <td class="number saved">{row.savedMemory}</td>
      <td class="note">{row.note}</td>
    </tr>
  );
}

function Cell({ cell }: { cell: SizeCell }) {
  if (!cell.then) return <td class="number">{cell.now}</td>;
  return <td class="number">{cell.now} <span aria-hidden="true">→</span><span class="visually-hidden">to</span> <strong>{cell.then}</strong></td>;
}

function Patch({ text }: { text: string }) {
  return (
    <details class="patch">
      <summary>YAML patch</summary>
      <p class="faint">Read it, save it as <code>patch.yaml</code>, then <code>kubectl apply --server-side --force-conflicts -f patch.yaml</code></p>
      <CopyText name="copy" text={text} />
    </details>
  );
}
