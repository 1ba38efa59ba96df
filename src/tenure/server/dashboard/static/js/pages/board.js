// Tasks in columns, by state.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Loaded } from "../parts/notices.js";
import { Progress, State } from "../parts/states.js";
import { TaskLink, address, useRoute } from "../router.js";
import { Time } from "../time.js";
import { number } from "../format.js";

const MOST = 30; // in one column
const COLUMNS = [
  { name: "Waiting", states: ["created", "pending", "retrying"], order: "-created_at" },
  { name: "Ready", states: ["ready"], order: "created_at" },
  { name: "In progress", states: ["claimed", "running", "validating"], order: "-updated_at" },
  { name: "Needs a person", states: ["paused", "dead_lettered"], order: "-updated_at" },
  { name: "Finished", states: ["completed", "cancelled"], order: "-updated_at" },
];

export function Board({ project, params }) {
  return html`<div class="board">${COLUMNS.map((column) =>
    html`<${Column} key=${column.name} project=${project} params=${params} column=${column} />`)}</div>`;
}

function Column({ project, params, column }) {
  const { query } = useRoute();
  const asked = { ...params, state: column.states, order: column.order, limit: MOST };
  const tasks = useQuery(path(project, "tasks"), asked, { pause: 1000 });
  const count = tasks.data ? `${number(tasks.data.items.length)}${tasks.data.next ? "+" : ""}` : "";
  const all = new URLSearchParams([...query].filter(([name]) => name !== "view" && name !== "state"));
  for (const state of column.states) all.append("state", state);
  return html`<section class="column" aria-label=${column.name}>
    <h2>${column.name} <span class="count">${count}</span></h2>
    <${Loaded} of=${tasks} lines=${3}>${({ items, next }) => html`
      <ul>${items.map((task) => html`<${Ticket} key=${task.id} project=${project} task=${task} />`)}</ul>
      ${!items.length && html`<p class="faint column-empty">No tasks</p>`}
      ${next && html`<a class="note" href=${address(project, "tasks", null, all)}>Show all</a>`}`}<//>
  </section>`;
}

// The reason or error, for a task that needs a person.
function trouble(task) {
  if (task.state === "paused") return task.reason;
  return ["retrying", "dead_lettered"].includes(task.state) ? task.last_error?.message : null;
}

function Ticket({ project, task }) {
  return html`<li class=${`ticket b-${task.state}`} data-key=${task.key}>
    <${TaskLink} project=${project} task=${task.key} class="ticket-link">
      <span class="ticket-top">
        <span class="mono">${task.ref}</span><${State} state=${task.state} short />
        <span class="spacer"></span><span class="faint"><${Time} at=${task.updated_at} brief /></span>
      </span>
      <span class="ticket-title text">${task.title}</span>
      ${task.agent && html`<span class="ticket-agent text">${task.agent}</span>`}
      ${task.agent && html`<${Progress} percent=${task.percent} />`}
      ${trouble(task) && html`<span class="ticket-error text">${trouble(task)}</span>`}
    <//>
  </li>`;
}
