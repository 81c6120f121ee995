/** Above the panels: what they show, containers or parts of the whole node, and how containers are added up. */

import { SWEPT } from "./groups";
import type { Model } from "./model";
import { HEAT } from "./panels";
import type { MetricJson } from "./types";
import { GROUPINGS, type Grouping, type PanelChoice } from "./view";

interface Section {
  name: string;
  title: string;
  panels: PanelChoice[];
}

/** A metric of a part, and the raw name that must have been measured for it. */
interface Wanted {
  needs: string;
  scope: string;
  metric: string;
}

function want(scope: string, ...pairs: [needs: string, metric: string][]): Wanted[] {
  return pairs.map(([needs, metric]) => ({ needs, scope, metric }));
}

/** What is shown of each part of the node, without picking. */
const PARTS: readonly { name: string; title: string; wanted: Wanted[] }[] = [
  { name: "node", title: "CPU, memory, disks and network of the whole node", wanted: want("node", ["cpu.user", "cpu"], ["memory.MemAvailable", "memory"], ["disk.sectors_written", "disk_write"], ["network.receive_bytes", "network_receive"], ["network.transmit_bytes", "network_transmit"]) },
  { name: "cores", title: "each core", wanted: want("cpu", ["cpu.user", "cpu"], ["cpu.system", "cpu_system"], ["cpu.iowait", "cpu.iowait"], ["cpu.steal", "cpu.steal"]) },
  { name: "disks", title: "each disk", wanted: [...want("disk", ["disk.sectors_read", "disk_read"], ["disk.sectors_written", "disk_write"], ["disk.io_ms", "disk.io_ms"], ["disk.io_now", "disk.io_now"]), ...want("filesystem", ["filesystem.available", "filesystem.available"])] },
  { name: "interfaces", title: "each network interface", wanted: want("network", ["network.receive_bytes", "network_receive"], ["network.transmit_bytes", "network_transmit"], ["network.receive_drop", "network.receive_drop"], ["network.receive_errs", "network.receive_errs"]) },
  { name: "processes", title: "processes of the node, and the largest of them where they are measured", wanted: [...want("process", ["process.cpu", "cpu"], ["process.rss", "memory"]), ...want("node", ["cpu.procs_running", "cpu.procs_running"], ["cpu.procs_blocked", "cpu.procs_blocked"])] },
  { name: "pressure", title: "how long tasks of the node waited", wanted: want("node", ["pressure.cpu.some.total", "pressure_cpu"], ["pressure.memory.some.total", "pressure_memory"], ["pressure.io.some.total", "pressure_io"]) },
];

/** The parts that this node measured. */
export function sectionsOf(metrics: readonly MetricJson[]): Section[] {
  const names = new Set(metrics.map((metric) => metric.name));
  const parts = PARTS.map(({ name, title, wanted }) => ({ name, title, panels: wanted.filter(({ needs }) => names.has(needs)).map(({ scope, metric }) => ({ metric, scope, title: "" })) }));
  return parts.filter((part) => part.panels.length > 0);
}

const HEATED = ["memory", "cpu", "pressure_cpu", "pressure_memory"];

function heatPanels(model: Model): PanelChoice[] {
  const names = new Set(model.panels.metrics.filter((metric) => metric.scope === "container").map((metric) => metric.name));
  return HEATED.filter((name) => names.has(name)).slice(0, 2).map((metric) => ({ metric, scope: HEAT, title: "" }));
}

const GROUP_WORDS: Record<Grouping, string> = { "": "each container", namespace: "sum by namespace", workload: "sum by workload", node: "sum by node" };

function sameAs(panels: PanelChoice[] | null, others: PanelChoice[]): boolean {
  const key = (list: PanelChoice[]): string => list.map((one) => `${one.scope}:${one.metric}`).join();
  return panels !== null && key(panels) === key(others);
}

export function Sections({ model }: { model: Model }) {
  const { view } = model;
  if (view.who) return null;
  const show = (panels: PanelChoice[] | null): void => model.address.change({ panels, focus: 0, only: "", hidden: [], incident: "" });
  const sections = sectionsOf(model.panels.metrics);
  const heat = heatPanels(model);
  const isOfContainers = model.panels.list.some((panel) => !panel.choice.scope && SWEPT.includes(panel.choice.metric));
  return (
    <nav class="sections" aria-label="what the panels show">
      <button type="button" class="section" aria-label="containers, as panels" aria-pressed={isOfContainers} onClick={() => show(null)}>containers</button>
      {heat.length > 0 && !model.source.offline && <button type="button" class="section" aria-pressed={sameAs(view.panels, heat)} title="how near every container is to its limit" onClick={() => show(heat)}>heat map</button>}
      {sections.map((one) => <button key={one.name} type="button" class="section" aria-pressed={sameAs(view.panels, one.panels)} title={one.title} onClick={() => show(one.panels)}>{one.name}</button>)}
      <span class="spring" />
      {isOfContainers && !model.source.offline && (
        <select class="by" aria-label="add up by" value={view.by} onChange={(event) => model.address.change({ by: (event.currentTarget.value as Grouping), containers: [], only: "", hidden: [], incident: "" })}>
          {GROUPINGS.filter((one) => one !== "node" || view.by === one || (model.data.instance.value?.nodes.length ?? 0) > 1).map((one) => <option key={one} value={one}>{GROUP_WORDS[one]}</option>)}
        </select>
      )}
      {!model.source.offline && <button type="button" title="what changed in this range, against as long before (w); or hold Alt and drag over a bump" onClick={() => model.explain(model.time.span)}>what changed?</button>}
    </nav>
  );
}
