// The dags of a project, with their progress.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Bar } from "../parts/states.js";
import { address } from "../router.js";
import { Time } from "../time.js";
import { number } from "../format.js";
import { PlanUpload } from "./plan-upload.js";

export function Dags({ project }) {
  const dags = useQuery(path(project, "dags"), {}, { pause: 2000 });
  return html`
    <header class="page-head"><h1>Dags</h1><${PlanUpload} project=${project} /></header>
    <${Loaded} of=${dags} what="Loading the dags">${({ items }) => items.length
      ? html`<${Rows} project=${project} dags=${[...items].reverse()} />`
      : html`<${Empty} title="No dags yet">
          <p>Tasks that depend on each other form a dag:</p>
          <p><code>tenure plan apply plan.yaml</code>, or <code>tenure add … --after B-001</code>.</p>
        <//>`}<//>`;
}

export const partsOf = (dag) => [
  { name: "completed", value: dag.completed, tone: "good" },
  { name: "runnable", value: dag.live, tone: "ready" },
  { name: "blocked", value: dag.blocked, tone: "rest" },
  { name: "dead letters", value: dag.dead, tone: "bad" },
  { name: "cancelled", value: dag.cancelled, tone: "none" },
];

function Rows({ project, dags }) {
  return html`<div class="scroll panel flush" tabindex="0"><table class="table flow-table">
    <thead><tr>
      <th>Dag</th><th>Status</th><th>Progress</th>
      <th class="right">Completed</th><th class="right">Dead</th><th class="right">Created</th>
    </tr></thead>
    <tbody>${dags.map((dag) => html`<tr key=${dag.id}>
      <td class="title-cell">
        <a class="text title-link" href=${address(project, "dags", dag.id)}>${dag.title || dag.plan || dag.id}</a>
        ${dag.plan && dag.title && html`${" "}<span class="tag text">${dag.plan}</span>`}
      </td>
      <td class="fit">${dag.status}</td>
      <td class="grow wide-bar"><${Bar} parts=${partsOf(dag)} /></td>
      <td class="figures">${`${number(dag.completed)} of ${number(dag.total)}`}</td>
      <td class=${`figures ${dag.dead ? "bad-text" : "faint none"}`}>${number(dag.dead)}</td>
      <td class="figures faint"><${Time} at=${dag.created_at} /></td>
    </tr>`)}</tbody>
  </table></div>`;
}
