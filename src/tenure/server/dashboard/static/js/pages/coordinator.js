// The coordinator: the leader of the store, its term and cycles, and its last error.
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Failure, Loading, Loaded } from "../parts/notices.js";
import { Facts, Panel } from "../parts/panels.js";
import { Time } from "../time.js";
import { NOTHING, number } from "../format.js";
import { SealedLog } from "./sealed-log.js";

export function Coordinator({ project, status }) {
  const coordinator = useQuery("/coordinator/status", {}, { pause: 1000 });
  const logs = useQuery("/coordinator/logs", { limit: 50 }, { pause: 2000 });
  const isHidden = coordinator.data === null && [403, 404].includes(coordinator.error?.status);
  return html`
    <header class="page-head"><h1>Coordinator</h1></header>
    <div class="columns two">
      <${Panel} title="Leader of the store">
        ${isHidden
          ? html`<${LeaderOnly} leader=${status.data?.coordinator} error=${coordinator.error} />`
          : html`<${Loaded} of=${coordinator} lines=${5} what="Loading the coordinator">${(data) => html`
              <${Status} data=${data} />`}<//>`}
      <//>
      <${Panel} title=${`Leader of ${project}`}><${ProjectLeader} status=${status} /><//>
    </div>
    <${SealedLog} project=${project} />
    ${!isHidden && html`<${Panel} title="Log"><${Log} logs=${logs} /><//>`}`;
}

const when = (instant) => (instant ? html`<${Time} at=${instant} />` : NOTHING);

function Status({ data }) {
  const where = data.here ? (data.here.leads ? " on this server" : " on another server") : "";
  return html`
    <p class="dot-label">
      <i class=${`dot ${data.active ? "good" : "odd"}`}></i>${data.active ? `Active${where}` : "No leader"}
    </p>
    <${Facts} wide of=${[
      ["Leader", data.instance ?? NOTHING],
      ["Term", number(data.term)],
      ["Since", when(data.since)],
      ["Last heartbeat", when(data.last_heartbeat_at)],
      ["Cycles", number(data.cycles)],
      ["Last cycle", when(data.last_cycle_at)],
      ["Tasks pending", number(data.pending_tasks)],
      ["Tasks running", number(data.running_tasks)],
      ["Tasks overdue", number(data.overdue_tasks)],
      ["Agents healthy", number(data.healthy_agents)],
      ["Agents stale", number(data.stale_agents)],
      ["Projects", data.projects?.join(", ")],
    ]} />
    ${data.last_error
      ? html`<p class="problem">${data.last_error.message} <span class="faint">${when(data.last_error.at)}</span></p>`
      : html`<p class="hint">No failed cycles.</p>`}`;
}

// The leader from the project's status, if the coordinator's status is not available.
function LeaderOnly({ leader, error }) {
  return html`
    ${leader ? html`<${Leader} leader=${leader} />` : html`<p class="quiet">No leader.</p>`}
    <p class="hint">${error.status === 403 ? "Admins see more." : "This server does not show more."}</p>`;
}

function Leader({ leader }) {
  return html`<${Facts} wide of=${[
    ["Leader", leader.holder],
    ["Term", number(leader.term)],
    ["Since", when(leader.since)],
    ["Lease ends", when(leader.until)],
  ]} />`;
}

function ProjectLeader({ status }) {
  if (status.data === null) {
    return status.error ? html`<${Failure} error=${status.error} />` : html`<${Loading} lines=${3} />`;
  }
  const { leader } = status.data;
  if (leader) return html`<${Leader} leader=${leader} />`;
  return html`<p class="quiet">
    No agent leads this project. An agent becomes the leader with <code>tenure lead</code>; messages to${" "}
    <code>@leader</code> wait.
  </p>`;
}

function Log({ logs }) {
  if (logs.error && logs.data === null) return html`<p class="faint">${logs.error.message}</p>`;
  const line = (one) => html`<li class=${one.level}>
    <span class="faint">${when(one.time ?? one.at)}</span>
    <span class="mono faint">${one.level ?? "info"}</span>
    <span class="text">${one.text ?? one.message}</span>
  </li>`;
  return html`<${Loaded} of=${logs} lines=${4}>${({ items }) => items.length
    ? html`<ol class="log">${[...items].reverse().map(line)}</ol>`
    : html`<p class="faint">No entries.</p>`}<//>`;
}

