/** The query behind a panel, as "copy as" and alerts need it. */

import type { PanelQuery } from "./copy";
import type { Model } from "./model";
import type { Panel } from "./panels";

export function queryOf(model: Model, panel: Panel): PanelQuery {
  const series = panel.slot.value?.series.filter(model.selection.shownIn(panel.slot.value)) ?? [];
  const containers = panel.choice.scope || panel.joined ? [] : series.map((one) => ({
    id: one.id,
    lives: one.lives.length ? one.lives : [one.id],
    pod: one.labels["pod_name"] ?? "",
    container: one.labels["container_name"] ?? "",
    namespace: one.labels["namespace"] ?? "",
  }));
  return { metric: panel.choice.metric, scope: panel.choice.scope, containers, span: model.time.span, origin: window.location.origin };
}
