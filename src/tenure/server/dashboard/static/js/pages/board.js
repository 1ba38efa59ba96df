// Tasks in columns, by state. A task is moved by dragging it, or with the button on it: the move is an action of
// pages/task-actions.js, and the server decides.
import { path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useOperator } from "../me.js";
import { Ask, Dialog } from "../parts/dialogs.js";
import { Icon } from "../parts/icons.js";
import { Loaded } from "../parts/notices.js";
import { Progress, State } from "../parts/states.js";
import { toast } from "../parts/toasts.js";
import { TaskLink, address, useRoute } from "../router.js";
import { Time } from "../time.js";
import { inWords, number } from "../format.js";
import { ACTIONS, can, idOf, start } from "./task-actions.js";

const MOST = 30; // in one column
const FIELDS = ["ref", "title", "state", "agent", "percent", "updated_at", "reason", "generation", "last_error", "pauses"]; // shown
const COLUMNS = [
  { name: "Waiting", states: ["created", "pending", "retrying"], order: "-created_at" },
  { name: "Ready", states: ["ready"], order: "created_at" },
  { name: "In progress", states: ["claimed", "running", "validating"], order: "-updated_at" },
  { name: "Needs a person", states: ["paused", "dead_lettered"], order: "-updated_at" },
  { name: "Finished", states: ["completed", "cancelled"], order: "-updated_at" },
];

// Column → ids of the actions that lead there, the first that applies is taken; and why others do not.
const WAYS = {
  Waiting: { by: [], why: "A task waits because of its dependencies or its delay: nobody moves it here." },
  Ready: {
    by: ["resume", "retry", "retry-now", "publish", "answer", "override", "recover", "reset"],
    why: "Its dependencies make it ready.",
  },
  "In progress": { by: [], why: "Only the claim of an agent moves a task here. Assign offers it to one." },
  "Needs a person": { by: ["pause"], why: "Only a task that waits or is in progress can be paused." },
  Finished: { by: ["approve", "cancel"], why: "Only a result completes a task; an unfinished one can be cancelled." },
};

// The action that moves the task to the column, or why there is none.
function wayTo(column, task) {
  if (column.states.includes(task.state)) return { why: `It is in ${column.name} already.` };
  const fitting = WAYS[column.name].by.map((id) => ACTIONS.find((action) => idOf(action) === id));
  const action = fitting.find((one) => can(one, task));
  if (action) return { action };
  return { why: `${task.ref} is ${inWords(task.state)}. ${WAYS[column.name].why}` };
}

export function Board({ project, params }) {
  const [dragged, drag] = useState(null);
  const [moving, move] = useState(null);
  const [asked, ask] = useState(null);
  const canMove = useOperator();
  const agents = useQuery(canMove ? path(project, "agents") : null, {}, { pause: 30_000 });
  const names = (agents.data?.items ?? []).map((agent) => agent.name);
  function moveTo(column, task) {
    drag(null);
    move(null);
    const { action, why } = wayTo(column, task);
    if (action) start(project, action, task, names, ask);
    else toast({ tone: "odd", text: `Not moved: ${why}` });
  }
  const all = { project, params, dragged, moveTo, ...(canMove ? { drag, move } : {}) };
  return html`<div class="board" tabindex="0" role="group" aria-label="Board">${COLUMNS.map((column) =>
      html`<${Column} key=${column.name} column=${column} ...${all} />`)}</div>
    ${moving && html`<${Move} task=${moving} moveTo=${moveTo} close=${() => move(null)} />`}
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function Column({ project, params, column, dragged, drag, move, moveTo }) {
  const { query } = useRoute();
  const [isOver, setOver] = useState(false);
  const asked = { ...params, state: column.states, order: column.order, limit: MOST, fields: FIELDS };
  // Five columns ask: each only after a move into it or out of it.
  const concerns = (event) => [event.previous_state, event.new_state].some((state) => column.states.includes(state));
  const spared = { pause: 4000, isSpared: true, parts: COLUMNS.length };
  const tasks = useQuery(path(project, "tasks"), asked, { ...spared, concerns });
  const count = tasks.data ? `${number(tasks.data.items.length)}${tasks.data.next ? "+" : ""}` : "";
  const all = new URLSearchParams([...query].filter(([name]) => name !== "view" && name !== "state"));
  for (const state of column.states) all.append("state", state);
  const way = dragged && wayTo(column, dragged);
  const look = ["column", way?.action && "allowed", way && !way.action && "closed", isOver && "over"].filter(Boolean);
  // A drop is taken in each column, so that a refused one can say why.
  function over(event) {
    if (!dragged) return;
    event.preventDefault();
    setOver(true);
  }
  function dropped(event) {
    event.preventDefault();
    setOver(false);
    if (dragged) moveTo(column, dragged);
  }
  const left = (event) => !event.currentTarget.contains(event.relatedTarget) && setOver(false);
  const drops = { onDragEnter: over, onDragOver: over, onDragLeave: left, onDrop: dropped };
  return html`<section class=${look.join(" ")} aria-label=${column.name} ...${drops}>
    <h2>${column.name} <span class="count">${count}</span></h2>
    ${way && html`<p class="column-way">${way.action ? way.action.label : "Not allowed"}</p>`}
    <${Loaded} of=${tasks} lines=${3}>${({ items, next }) => html`
      <ul>${items.map((task) => html`<${Ticket} key=${task.id} project=${project} task=${task} drag=${drag}
        move=${move} />`)}</ul>
      ${!items.length && html`<p class="faint column-empty">No tasks</p>`}
      ${next && html`<a class="note" href=${address(project, "tasks", null, all)}>Show all</a>`}`}<//>
  </section>`;
}

// The reason or error, for a task that needs a person.
function trouble(task) {
  if (task.state === "paused") return task.reason;
  const isOfLast = task.last_error?.generation === task.generation; // a claim that was lost since has left no error
  return isOfLast && ["retrying", "dead_lettered"].includes(task.state) ? task.last_error.message : null;
}

function Ticket({ project, task, drag, move }) {
  const started = (event) => {
    event.dataTransfer.effectAllowed = "move";
    event.dataTransfer.setData("text/plain", task.key);
    setTimeout(() => drag(task)); // a change of the page in this event would end the drag
  };
  const drags = drag ? { draggable: true, onDragStart: started, onDragEnd: () => drag(null) } : {};
  return html`<li class=${`ticket b-${task.state}`} data-key=${task.key} ...${drags}>
    <${TaskLink} project=${project} task=${task.key} class="ticket-link" draggable=${false}>
      <span class="ticket-top">
        <span class="mono">${task.ref}</span><${State} state=${task.state} short />
        <span class="spacer"></span><span class="faint"><${Time} at=${task.updated_at} brief /></span>
      </span>
      <span class="ticket-title text">${task.title}</span>
      ${task.agent && html`<span class="ticket-agent text">${task.agent}</span>`}
      ${task.agent && html`<${Progress} percent=${task.percent} />`}
      ${trouble(task) && html`<span class="ticket-error text">${trouble(task)}</span>`}
    <//>
    ${move && html`<button class="button ghost small ticket-move" aria-label=${`Move ${task.ref}`} title="Move"
      onClick=${() => move(task)}><${Icon} name="move" /></button>`}
  </li>`;
}

// The same by keys: the columns as buttons, and why a task cannot go to the others.
function Move({ task, moveTo, close }) {
  return html`<${Dialog} title=${`Move: ${task.ref} ${task.title}`} close=${close}>
    <ul class="moves">${COLUMNS.map((column) => {
      const { action, why } = wayTo(column, task);
      return html`<li key=${column.name}>
        <button class="button" disabled=${!action} onClick=${() => moveTo(column, task)}>${column.name}</button>
        <span class="faint text">${action ? action.label : why}</span>
      </li>`;
    })}</ul>
    <div class="dialog-buttons"><button class="button" onClick=${close}>Back</button></div>
  <//>`;
}
