/** Two nodes in one range, or a range beside an earlier one: measures, then what differs most. */

import { plain, quantity, shorten, spoken } from "../format";
import { duration, renderSpan } from "../time";
import type { ClusterComparisonJson, LevelDifferenceJson, SideJson } from "../types";
import type { ClusterModel } from "./model";
import { METRICS } from "./workloads";

const EARLIER = [3600, 86400, 604800];

export function Compare({ model }: { model: ClusterModel }) {
  const { view, span } = model;
  const names = (model.wall.value?.nodes ?? []).map((row) => row.node).sort();
  const width = Math.round((span.to - span.from) / 60) * 60;
  const chosen = view.before > 0 || view.left !== "" || view.right !== "";
  const { value, failure } = model.comparison;
  return (
    <section class="comparing" aria-label="compare">
      <div class="tools-row">
        <label>left <NodeChoice label="left node" names={names} value={view.left} choose={(left) => model.change({ left })} /></label>
        <label>right <NodeChoice label="right node" names={names} value={view.right} choose={(right) => model.change({ right })} /></label>
        <label>left range <select aria-label="range on the left" value={String(view.before)} onChange={(event) => model.change({ before: Number(event.currentTarget.value) })}>
          <option value="0">the same range</option>
          <option value={String(width)}>the {duration(width)} before</option>
          {EARLIER.filter((one) => one !== width).map((one) => <option key={one} value={String(one)}>{duration(one)} earlier</option>)}
          {view.before > 0 && view.before !== width && !EARLIER.includes(view.before) && <option value={String(view.before)}>{duration(view.before)} earlier</option>}
        </select></label>
      </div>
      {!chosen && <p class="state">Choose two nodes, or an earlier range for the left side: of one node, or of all.</p>}
      {chosen && failure && <p class="state harm" role="alert">{failure.title}: {failure.detail} {failure.hint}</p>}
      {chosen && !failure && !value && <p class="state" role="status">asking the nodes ...</p>}
      {chosen && value && <Differences value={value} model={model} />}
    </section>
  );
}

function NodeChoice({ label, names, value, choose }: { label: string; names: string[]; value: string; choose: (node: string) => void }) {
  return (
    <select aria-label={label} value={value} onChange={(event) => choose(event.currentTarget.value)}>
      <option value="">all nodes</option>
      {value && !names.includes(value) && <option value={value}>{plain(shorten(value, 40))}</option>}
      {names.map((name) => <option key={name} value={name}>{plain(shorten(name, 40))}</option>)}
    </select>
  );
}

function Differences({ value, model }: { value: ClusterComparisonJson; model: ClusterModel }) {
  const titles = new Map((model.wall.value?.measures ?? []).map((one) => [one.id, one.title]));
  const sides = [sideName(value.left, value.right, model), sideName(value.right, value.left, model)] as const;
  return (
    <>
      <p class="headline">{spoken(value.sentence)}{value.asking > 0 && <span class="faint"> {value.asking} more being asked ...</span>}</p>
      <Table caption="measures, mean of the range" absent="not measured" sides={sides} rows={value.measures.map((row) => ({ ...row, what: titles.get(row.what) ?? row.what }))} />
      <Table caption={value.kind === "nodes" ? `nodes, by the difference of ${titles.get(model.view.measure) ?? model.view.measure}` : `workloads, by the difference of ${METRICS.find(([id]) => id === model.view.metric)?.[1] ?? model.view.metric}`} absent="not there" sides={sides} rows={value.rows} />
    </>
  );
}

/** What tells this side from the other: the node, the range, or both. */
function sideName(side: SideJson, other: SideJson, model: ClusterModel): string {
  const node = side.node ? plain(shorten(side.node, 32)) : "all nodes";
  if (side.from === other.from) return node;
  const when = renderSpan({ from: side.from, to: side.to }, model.view.utc);
  return side.node === other.node ? when : `${node}, ${when}`;
}

function Table({ caption, absent, sides, rows }: { caption: string; absent: string; sides: readonly [string, string]; rows: LevelDifferenceJson[] }) {
  if (rows.length === 0) return null;
  const largest = Math.max(...rows.map((row) => Math.abs((row.right ?? 0) - (row.left ?? 0))), 0);
  return (
    <div class="scroll" role="region" aria-label={caption} tabIndex={0}>
      <table>
        <caption>{caption}</caption>
        <thead><tr><th scope="col">what</th><th scope="col" class="number">{sides[0]}</th><th scope="col" class="number">{sides[1]}</th><th scope="col" class="number">difference</th><th scope="col" class="range-cell"><span class="visually-hidden">size of the difference</span></th></tr></thead>
        <tbody>{rows.map((row) => {
          const known = row.left !== null && row.right !== null;
          const difference = (row.right ?? 0) - (row.left ?? 0);
          return (
            <tr key={row.what}>
              <th scope="row"><bdi>{plain(shorten(row.what, 60))}</bdi></th>
              <td class="number">{level(row.left, row.unit, absent)}</td>
              <td class="number">{level(row.right, row.unit, absent)}</td>
              <td class="number">{known ? `${difference > 0 ? "+" : ""}${quantity(difference, row.unit)}` : <span class="faint">–<span class="visually-hidden"> only on one side</span></span>}</td>
              <td class="range-cell"><span class="bar" aria-hidden="true"><i style={{ width: `${largest > 0 && row.unit === rows[0]?.unit ? (Math.abs(difference) / largest) * 100 : 0}%` }} /></span></td>
            </tr>
          );
        })}</tbody>
      </table>
    </div>
  );
}

function level(value: number | null, unit: string, absent: string) {
  return value === null ? <span class="faint">{absent}</span> : quantity(value, unit);
}
