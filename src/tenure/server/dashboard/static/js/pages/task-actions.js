// The actions of a person on tasks: one table for the task page, the lists and the dead letters.
import { batch, command, get, path } from "../api.js";
import { html, useState } from "../html.js";
import { acted } from "../live.js";
import { useOperator } from "../me.js";
import { Ask, Dialog } from "../parts/dialogs.js";
import { done, toast } from "../parts/toasts.js";
import { TaskLink } from "../router.js";
import { HELD, STATES, counted } from "../format.js";
import { editing, modifying } from "./task-form.js";
import { isToLand } from "./verdicts.js";

const WAITING = ["pending", "ready", "retrying", "validating"];
const UNFINISHED = ["created", "paused", "dead_lettered", ...WAITING, ...HELD];

const REASON = { name: "reason", label: "Reason", kind: "text", hint: "The task's log shows it." };
const TO_WHOM = [
  { name: "agent", label: "Agent", required: true },
  { name: "seconds", label: "For how many seconds", kind: "number", value: "60", required: true },
];

// Lists may come without the causes: then the server decides whether the action applies.
const has = (task, ...causes) => !task.pauses || task.pauses.some((pause) => causes.includes(pause.cause));

// `verb` is the name of the route and the command, `id` distinguishes two actions of one verb, `states` where it applies,
// `fields` the inputs, `values` the fields that are always sent, `form` a larger form, made from the whole task.
export const ACTIONS = [
  {
    verb: "approve", label: "Approve", message: "Approved", isFirst: true,
    states: ["validating", "paused"], fits: (task) => isDecidable(task) && !isToLand(task.validation),
  },
  {
    verb: "reject", label: "Reject", message: "Rejected", danger: true,
    states: ["validating", "paused"], fits: isDecidable,
    text: "The attempt counts as failed. The next attempt gets your text.",
    fields: [{ name: "reason", label: "Reasons", kind: "text", required: true }],
  },
  {
    verb: "answer", label: "Answer", message: "Answered", isFirst: true,
    states: ["paused"], fits: (task) => has(task, "question"),
    fields: [{ name: "text", label: "Answer", kind: "text", required: true }],
  },
  {
    verb: "retry", label: "Retry", message: "Retried", isFirst: true, inBatch: true,
    states: ["dead_lettered", "cancelled"],
    text: "Starts a new run with all attempts.",
    fields: [{ name: "note", label: "Note for the next attempt", kind: "text", hint: "Optional." }],
  },
  { verb: "retry", id: "modify", label: "Change and retry", states: ["dead_lettered", "cancelled"], form: modifying },
  { verb: "retry", id: "retry-now", label: "Retry now", message: "Retried", states: ["retrying"] },
  {
    verb: "resume", label: "Resume", message: "Resumed", inBatch: true,
    states: ["paused"], fits: (task) => has(task, "person", "drain", "lost"),
  },
  {
    verb: "resume", id: "undrain", label: "Cancel the drain", message: "Drain cancelled",
    states: HELD, fits: (task) => task.pauses?.some((pause) => pause.cause === "drain"),
  },
  {
    verb: "resume", id: "override", label: "Resume despite the budget", message: "Resumed despite the budget",
    states: ["paused"], fits: (task) => task.pauses?.some((pause) => pause.cause === "budget"), values: { budget: true },
    text: "The task continues although its budget is used up; the log shows who decided that. A person's pause of the \
task ends too.",
    fields: [],
  },
  {
    verb: "pause", label: "Pause", message: "Paused", inBatch: true,
    states: [...WAITING, ...HELD],
    text: "Ends the claim, if there is one; a late submit of its holder may still be accepted.",
    fields: [REASON],
  },
  { verb: "publish", label: "Publish", message: "Published", states: ["created"] },
  { verb: "edit", label: "Edit", states: STATES.filter((state) => state !== "cancelled"), form: editing },
  {
    verb: "assign", label: "Assign", message: "Offered",
    states: ["ready"],
    text: "Offers the task to one agent for a while; then any agent may claim it again.",
    fields: TO_WHOM,
  },
  {
    verb: "reassign", label: "Reassign", message: "Claim ended and task offered",
    states: HELD,
    text: "Ends the claim now and offers the task to another agent. A submit of the old holder is refused.",
    fields: TO_WHOM,
  },
  {
    verb: "recover", label: "Recover", message: "Recovered",
    states: HELD,
    text: "Ends a claim whose holder is gone or has lost its receipt. A later submit of it is refused, and kept.",
    fields: [REASON],
  },
  {
    verb: "reset", label: "Reset", message: "Reset", danger: true,
    states: ["completed"],
    text: "Starts the task again: its result no longer counts, and its dependents wait again.",
    fields: [{ name: "cascade", label: "Also reset its dependents", kind: "check", value: false }],
  },
  {
    verb: "adopt", label: "Adopt a result", message: "Adopted",
    states: ["pending", "ready", "retrying", "paused", "dead_lettered"], fits: (task) => task.hasKept,
    text: "Accepts the newest refused result as the result of the task.",
    fields: [{ name: "note", label: "Note", kind: "text" }],
  },
  {
    verb: "confirm-usage", label: "Confirm the cost", message: "Cost confirmed",
    states: null, fits: isDoubtful,
    text: "The reported cost is far above what its tokens cost. It was spent: budgets count it from now on.",
    fields: [],
  },
  {
    verb: "reject-usage", label: "Reject the cost", message: "Cost rejected", danger: true,
    states: null, fits: isDoubtful,
    text: "The reported cost is far above what its tokens cost. It was not spent: no budget counts that part.",
    fields: [],
  },
  {
    verb: "note", label: "Note", message: "Noted",
    states: null,
    fields: [{ name: "text", label: "Note", kind: "text", required: true }],
  },
  {
    verb: "cancel", label: "Cancel", message: "Cancelled", danger: true, inBatch: true,
    states: UNFINISHED,
    text: "The task will not be done. Its dependents see a failed dependency.",
    fields: [REASON],
  },
];

// A result is not accepted yet; the task may be paused only because no validator could decide. Once the landing has
// begun, only the landing itself ends it.
function isDecidable(task) {
  if (task.validation?.phase === "landing") return false;
  return task.state === "validating" || (task.pauses ?? []).every((pause) => pause.cause === "review");
}

function isDoubtful(task) {
  return Boolean(task.usage?.doubtful_usd);
}

export const idOf = (action) => action.id ?? action.verb;

export function can(action, task) {
  return (action.states === null || action.states.includes(task.state)) && (!action.fits || Boolean(action.fits(task)));
}

function sent(values) {
  const fields = Object.fromEntries(Object.entries(values).filter(([, value]) => value !== ""));
  return "seconds" in fields ? { ...fields, seconds: Number(fields.seconds) } : fields;
}

function send(project, action, task, values) {
  if (action.verb === "publish") return command(path(project, "publish"), { task: task.key });
  return command(path(project, "tasks", task.key, action.verb), { ...action.values, ...sent(values) });
}

// The actions of one task, the most likely first.
// `names`: other labels than the table's. `only`, `without`: ids of actions; an id is the verb unless the table says
// otherwise.
export function Actions({ project, task, agents = [], names = {}, only = null, without = [] }) {
  const [asked, ask] = useState(null);
  if (!useOperator()) return null;
  const look = (action) => {
    if (action.danger) return "button danger-text";
    return action.isFirst && !names[idOf(action)] ? "button primary" : "button";
  };
  const button = (action) => html`<button key=${idOf(action)} class=${look(action)}
    onClick=${() => start(project, action, task, agents, ask)}>${names[idOf(action)] ?? action.label}</button>`;
  const isWanted = (action) => (only?.includes(idOf(action)) ?? true) && !without.includes(idOf(action));
  return html`<div class="actions" role="group" aria-label="Actions">
    ${ACTIONS.filter((action) => can(action, task) && isWanted(action)).map(button)}
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}
  </div>`;
}

// Runs an action on a task, or shows its form by `ask`.
export async function start(project, action, task, agents, ask) {
  const message = `${action.message}: ${task.key}`;
  if (action.form) {
    try {
      ask(action.form(project, await get(path(project, "tasks", task.key)))); // with all fields, as they are now
    } catch (error) {
      toast({ tone: "bad", text: error.message, hint: error.hint });
    }
    return;
  }
  if (!action.fields) {
    await done(project, message, () => send(project, action, task, {}));
    return;
  }
  ask({
    title: `${action.label}: ${task.key}`, text: action.text, action: action.label, danger: action.danger,
    fields: action.fields.map((field) => withAgents(field, agents)),
    run: (values) => done(project, message, () => send(project, action, task, values), { throws: true }),
  });
}

const withAgents = (field, agents) => (field.name === "agent" ? { ...field, options: agents } : field);

// The same for several tasks: one request, one outcome each.
export function BatchBar({ project, tasks, clear }) {
  const [asked, ask] = useState(null);
  const [answers, setAnswers] = useState(null);
  if (!useOperator()) return null;
  async function run(action, values = {}) {
    const commands = tasks.map((task) => ({ command: action.verb, task: task.key, ...sent(values) }));
    try {
      const outcomes = await batch(project, commands);
      setAnswers({ action, rows: tasks.map((task, index) => ({ task, outcome: outcomes[index] })) });
      clear();
      acted();
    } catch (error) {
      toast({ tone: "bad", text: error.message, hint: error.hint });
    }
  }
  const look = (action) => (action.danger ? "button small danger-text" : "button small");
  const button = (action) => html`<button key=${action.verb} class=${look(action)}
    disabled=${!tasks.some((task) => can(action, task))}
    onClick=${() => (action.fields ? ask(action) : run(action))}>${action.label}</button>`;
  return html`
    ${tasks.length > 0 && html`<div class="batch" role="region" aria-label="Selected tasks">
      <b>${counted(tasks.length, "task")} selected</b>
      ${ACTIONS.filter((action) => action.inBatch).map(button)}
      <span class="spacer"></span><button class="button small ghost" onClick=${clear}>Clear</button>
    </div>`}
    ${asked && html`<${Ask} title=${`${asked.label} ${counted(tasks.length, "task")}`} text=${asked.text}
      action=${`${asked.label} ${tasks.length}`} danger=${asked.danger} fields=${asked.fields}
      run=${(values) => run(asked, values)} close=${() => ask(null)} />`}
    ${answers && html`<${Answers} project=${project} ...${answers} close=${() => setAnswers(null)} />`}`;
}

function Answers({ project, action, rows, close }) {
  const good = rows.filter((row) => row.outcome.ok).length;
  return html`<${Dialog} title=${`${action.label}: ${good} of ${rows.length} done`} close=${close} wide>
    <div class="scroll tall" tabindex="0"><table class="table outcomes">
      <thead><tr><th>Task</th><th>Outcome</th><th>Why</th></tr></thead>
      <tbody>${rows.map(({ task, outcome }) => html`<tr key=${task.key} class=${outcome.ok ? "good" : "bad"}>
        <td><${TaskLink} project=${project} task=${task.key} class="mono" /></td>
        <td class="fit">${outcome.ok ? "✓" : "✗"} ${outcome.outcome ?? outcome.code}</td>
        <td class="faint text">${[outcome.message ?? outcome.detail, outcome.hint].filter(Boolean).join(" ")}</td>
      </tr>`)}</tbody>
    </table></div>
    <div class="dialog-buttons"><button class="button primary" autofocus onClick=${close}>Close</button></div>
  <//>`;
}
