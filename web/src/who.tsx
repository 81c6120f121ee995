/** The head of a container's page: what it is, what it may use, how often it was restarted, and how it ended. */

import { brief, plain, quantity, shorten, spoken } from "./format";
import type { Model } from "./model";
import { duration, minute, moment, tellTimes } from "./time";
import type { ContainerJson, EventJson } from "./types";

const TOLD = 4;

export function Who({ model }: { model: Model }) {
  const row = model.pageRow;
  const { value: story, trouble } = model.data.story;
  const series = model.panels.list.flatMap((panel) => panel.slot.value?.series ?? []).find((one) => one.id.startsWith(model.view.who) || one.lives.some((life) => life.startsWith(model.view.who)));
  const name = row?.name ?? series?.name ?? model.view.who;
  const ends = (story?.events ?? []).filter((event) => event.kind === "oom" || event.kind === "exit").reverse();
  return (
    <section class="who" aria-label={`container ${plain(shorten(brief(name), 60))}`}>
      <header>
        <h2><bdi>{plain(shorten(brief(name), 60))}</bdi> <span class="faint">{row ? plain(`${row.namespace ?? "no namespace"} · ${row.workload_kind} ${shorten(row.workload, 40)} · ${row.node}`) : ""}</span></h2>
        <button type="button" onClick={() => model.closeContainer()}>all containers</button>
      </header>
      <dl>
        {row && <Fact name="state" text={stateOf(row, model.view.utc)} harm={row.state === "oom_killed" || row.kills > 0} />}
        {row && <Fact name="lives" text={livesOf(row, story?.events ?? [])} harm={false} />}
        <Fact name="CPU" text={`${limitOf(model, "cpu")}, request ${row?.cpu_request == null ? "none known" : quantity(row.cpu_request, "cores")}`} harm={false} />
        <Fact name="memory" text={`${limitOf(model, "memory")}, request ${row?.memory_request == null ? "none known" : quantity(row.memory_request, "bytes")}`} harm={false} />
        {row?.image && <Fact name="image" text={shorten(row.image, 60)} harm={false} />}
      </dl>
      <ul class="obituary" aria-label="how its lives ended">
        {trouble && <li>{trouble.failure.title}: {trouble.failure.detail}</li>}
        {story && ends.length === 0 && <li class="faint">None of its lives has ended in what was recorded.</li>}
        {ends.slice(0, TOLD).map((event) => <li key={`${event.container} ${event.at}`} class={event.kind === "oom" ? "harm" : ""}><button type="button" class="plain" onClick={() => model.time.goTo({ from: event.at - 420, to: event.at + 150 })}>{spoken(tellTimes(event.sentence, model.view.utc, model.time.span.to))}</button></li>)}
        {ends.length > TOLD && <li class="faint">and {ends.length - TOLD} earlier ends</li>}
      </ul>
    </section>
  );
}

function Fact({ name, text, harm }: { name: string; text: string; harm: boolean }) {
  return <div><dt class="faint">{name}</dt><dd class={harm ? "harm" : ""}>{plain(text)}</dd></div>;
}

const STATES: Record<ContainerJson["state"], string> = { running: "running", exited: "ended", oom_killed: "killed for memory" };

function stateOf(row: ContainerJson, utc: boolean): string {
  const ended = row.state === "running" ? `, since ${minute(row.first_seen, utc)}` : `, ${moment(row.last_seen, utc)}`;
  return `${STATES[row.state]}${ended}${row.kills ? `; ${row.kills} of its lives ${row.kills === 1 ? "was" : "were"} killed for memory` : ""}`;
}

function livesOf(row: ContainerJson, events: readonly EventJson[]): string {
  const count = Math.max(row.lives.length, 1);
  const restarts = `${row.restarts} restart${row.restarts === 1 ? "" : "s"} in this range`;
  const seen = duration(Math.round(row.last_seen - row.first_seen));
  return `${count} in one line, ${restarts}; the newest was seen for ${seen}${events.some((event) => event.kind === "oom") ? "; red ticks are kills" : ""}`;
}

/** The limit that the server sent with the curve. */
function limitOf(model: Model, metric: string): string {
  const answer = model.panels.list.find((panel) => panel.choice.metric === metric && !panel.choice.scope)?.slot.value;
  if (!answer) return "limit not read yet";
  const limit = answer.series.find((one) => one.limit !== null)?.limit;
  return limit == null ? "no limit" : `limit ${quantity(limit, answer.unit)}`;
}
