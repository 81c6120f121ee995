/** Workloads over all nodes: the least, median and most that each used on one node, and on which. */

import { plain, quantity, shorten, spoken } from "../format";
import type { WorkloadSpreadJson } from "../types";
import type { ClusterModel } from "./model";
import { nodeLink } from "./view";
import { useState } from "preact/hooks";

export const METRICS = [["cpu", "CPU"], ["memory", "memory"], ["cpu_throttled", "throttling"], ["pressure_cpu", "CPU pressure"], ["pressure_memory", "memory pressure"]] as const;
const NODES_FIRST = 12;

export function Workloads({ model }: { model: ClusterModel }) {
  const { value, failure, loading } = model.workloads;
  const { view } = model;
  const largest = Math.max(...(value?.workloads ?? []).map((row) => row.most ?? 0), 0);
  return (
    <section class="spreads" aria-label="workloads across nodes">
      <div class="tools-row">
        <label>by <select aria-label="metric of workloads" value={view.metric} onChange={(event) => model.change({ metric: event.currentTarget.value })}>{METRICS.map(([id, title]) => <option key={id} value={id}>{title}</option>)}</select></label>
        <input id="workload-search" type="search" aria-label="filter workloads" placeholder="filter workloads" value={view.workload} onInput={(event) => model.change({ workload: event.currentTarget.value }, false)} />
        <span class="faint" role="status">{value ? progress(value.answered, value.asking, Object.keys(value.away).length, value.total) : failure ? `${failure.title}: ${failure.detail}` : loading ? "asking the nodes ..." : ""}</span>
      </div>
      {value && value.workloads.length > 0 && (
        <div class="scroll" role="region" aria-label="table of workloads" tabIndex={0}>
          <table>
            <thead><tr><th scope="col">workload</th><th scope="col" class="number">nodes</th><th scope="col" class="number">pods</th><th scope="col" class="number">least</th><th scope="col" class="number">median</th><th scope="col" class="number">most</th><th scope="col">spread over nodes</th><th scope="col" class="number">together</th></tr></thead>
            <tbody>{value.workloads.map((row) => <Spread key={`${row.namespace}/${row.name}/${row.kind}`} model={model} row={row} unit={value.unit} largest={largest} />)}</tbody>
          </table>
        </div>
      )}
      {value && value.workloads.length === 0 && value.asking === 0 && <p class="state">No workload fits.</p>}
    </section>
  );
}

function progress(answered: number, asking: number, away: number, total: number): string {
  const parts = [`${total} workloads of ${answered} nodes`];
  if (asking) parts.push(`${asking} being asked`);
  if (away) parts.push(`${away} not answering`);
  return parts.join(", ");
}

function Spread({ model, row, unit, largest }: { model: ClusterModel; row: WorkloadSpreadJson; unit: string; largest: number }) {
  const [open, setOpen] = useState(false);
  const share = (value: number | null): string => `${largest > 0 ? ((value ?? 0) / largest) * 100 : 0}%`;
  const where = row.on[0]?.node ?? "";
  return (
    <>
      <tr class={open ? "open" : ""}>
        <th scope="row"><button type="button" class="plain opener" aria-expanded={open} title={spoken(row.sentence)} onClick={() => setOpen(!open)}><span aria-hidden="true">{open ? "▾" : "▸"}</span> <bdi>{plain(shorten(row.name, 44))}</bdi></button> <span class="faint">{plain(shorten(row.namespace, 30))}</span></th>
        <td class="number">{row.nodes}</td>
        <td class="number">{row.pods}</td>
        <td class="number">{quantity(row.least, unit)}</td>
        <td class="number">{quantity(row.median, unit)}</td>
        <td class="number">{quantity(row.most, unit)}</td>
        <td class="range-cell" title={`most on ${plain(shorten(where, 60))}`}><span class="track-line" aria-hidden="true"><i class="from-to" style={{ left: share(row.least), width: `calc(${share(row.most)} - ${share(row.least)})` }} /><i class="middle" style={{ left: share(row.median) }} /></span></td>
        <td class="number">{row.total === null ? <span class="faint">–<span class="visually-hidden"> shares do not add up</span></span> : quantity(row.total, unit)}</td>
      </tr>
      {open && <tr class="on-nodes"><td colSpan={8}><OnNodes model={model} row={row} unit={unit} largest={largest} /></td></tr>}
    </>
  );
}

function OnNodes({ model, row, unit, largest }: { model: ClusterModel; row: WorkloadSpreadJson; unit: string; largest: number }) {
  const [all, setAll] = useState(false);
  const shown = all ? row.on : row.on.slice(0, NODES_FIRST);
  return (
    <>
      <ul class="bars">
        {shown.map((one) => (
          <li key={one.node}>
            <a href={nodeLink(one.node, model.span, model.view, { search: row.name })}><bdi>{plain(shorten(one.node, 32))}</bdi></a>
            <span class="bar" aria-hidden="true"><i style={{ width: `${largest > 0 ? ((one.used ?? 0) / largest) * 100 : 0}%` }} /></span>
            <span class="number">{quantity(one.used, unit)}</span>
          </li>
        ))}
      </ul>
      {shown.length < row.on.length && <button type="button" class="plain" onClick={() => setAll(true)}>all {row.on.length} nodes</button>}
    </>
  );
}
