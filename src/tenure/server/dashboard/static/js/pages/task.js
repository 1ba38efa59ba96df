// One task: state and reasons, lineage, results, cost, actions.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { BudgetLine, useTitled } from "../parts/budgets.js";
import { Markdown } from "../parts/markdown.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts, Panel } from "../parts/panels.js";
import { Progress, State } from "../parts/states.js";
import { Value } from "../parts/values.js";
import { TaskLink, address } from "../router.js";
import { Time } from "../time.js";
import { NOTHING, briefNumber, counted, dollars, lasting, nameIn } from "../format.js";
import { Actions } from "./task-actions.js";
import { Line } from "./events.js";
import { Lineage } from "./lineage.js";
import { Pauses, verbsOf } from "./pauses.js";
import { Transcript } from "./transcript.js";
import { isToLand } from "./verdicts.js";

const MOST_LINKS = 30;

export function Task({ project, id }) {
  const task = useQuery(path(project, "tasks", id));
  const why = useQuery(path(project, "tasks", id, "why"));
  const history = useQuery(path(project, "tasks", id, "history"));
  const results = useQuery(path(project, "tasks", id, "results"));
  const log = useQuery(path(project, "events"), { task: id, limit: 300 });
  return html`<${Loaded} of=${task} lines=${12} what="Loading the task">${(data) => html`
    <${Head} project=${project} task=${data} results=${results} />
    <${Pauses} project=${project} task=${data} />
    <${Reasons} why=${why.data} task=${data} />
    <div class="columns side">
      <div class="stack">
        <${Panel} title="Lineage"><${Generations} project=${project} history=${history} task=${data} /><//>
        <${Questions} answers=${data.answers ?? []} />
        <${Description} task=${data} />
        <${Transcript} project=${project} task=${data.key} claims=${history.data?.items ?? []} />
        <${Results} results=${results.data?.items ?? []} check=${task.validation} />
        <${Checkpoint} checkpoint=${data.checkpoint} />
        <${Panel} title="Log" flush><${Log} log=${log} project=${project} /><//>
      </div>
      <aside class="stack">
        <${Panel} title="Facts"><${About} project=${project} task=${data} /><//>
        <${Panel} title="Graph"><${Links} project=${project} task=${data} /><//>
        <${Cost} usage=${data.usage} />
        <${Budgets} project=${project} task=${data} />
      </aside>
    </div>`}<//>`;
}

function Head({ project, task, results }) {
  const agents = useQuery(path(project, "agents"), {}, { pause: 10_000 });
  const names = (agents.data?.items ?? []).map((agent) => agent.name);
  const hasKept = (results.data?.items ?? []).some((result) => !result.accepted && !isWaiting(result));
  return html`<header class="page-head task-head">
    <div class="task-name">
      <p class="crumbs"><a href=${address(project, "tasks")}>Tasks</a> / <span class="mono">${task.key}</span></p>
      <h1 class="text">${task.title}</h1>
      <p class="task-line">
        <${State} state=${task.state} />
        ${task.agent && html`<${Progress} percent=${task.percent} step=${task.step} />`}
        ${task.agent && task.step && html`<span class="quiet text">${task.step}</span>`}
      </p>
    </div>
    <${Actions} project=${project} task=${{ ...task, hasKept }} agents=${names} without=${verbsOf(task)} />
  </header>`;
}

const TONES = { dead_lettered: "bad", paused: "odd" };

function Reasons({ why, task }) {
  // The causes of a pause are shown above, each with its actions.
  const reasons = (why?.reasons ?? []).filter((reason) => !(task.pauses?.length && reason.startsWith("paused: ")));
  if (!reasons.length) return null;
  return html`<ul class=${`banner why ${TONES[task.state] ?? ""}`}>
    ${reasons.map((reason) => html`<li key=${reason} class="text">${reason}</li>`)}
  </ul>`;
}

function Generations({ project, history, task }) {
  return html`<${Loaded} of=${history} lines=${4}>${({ items }) => items.length
    ? html`<${Lineage} project=${project} claims=${items} task=${task} />`
    : html`<p class="faint">Not claimed yet. Each claim has its own generation, shown here.</p>`}<//>`;
}

function Questions({ answers }) {
  if (!answers.length) return null;
  return html`<${Panel} title="Questions">${answers.map((one, n) => html`<div key=${n} class="answer">
    <p class="text quiet">${one.question}</p>
    <${Markdown} text=${one.answer} />
    <p class="faint">${one.by}, <${Time} at=${one.at} /></p>
  </div>`)}<//>`;
}

const isThere = (value) => (value && typeof value === "object" ? Object.keys(value).length > 0 : Boolean(value));

// The description of the task.
function Description({ task }) {
  const all = [
    ["Description", task.description], ["Specification", task.spec], ["Constraints", task.constraints],
    ["Output contract", task.output], ["Touches", task.touches], ["Metadata", task.metadata],
  ];
  const parts = all.filter(([, value]) => isThere(value));
  if (!parts.length) return null;
  return html`<${Panel} title="Description">${parts.map(([name, value]) => html`<div key=${name} class="part">
    ${name !== "Description" && html`<h3>${name}</h3>`}${typeof value === "string"
      ? html`<${Markdown} text=${value} />` : html`<${Value} value=${value} />`}
  </div>`)}<//>`;
}

function Results({ results, check }) {
  if (!results.length) return null;
  const items = [...results].reverse().sort((a, b) => Number(b.accepted) - Number(a.accepted));
  return html`<${Panel} title="Results">
    ${items.map((result) => html`<${Result} key=${result.id} result=${result} check=${check} />`)}
  <//>`;
}

const isWaiting = (result) => result.reason === "VALIDATING";

function Result({ result, check }) {
  const more = [result.late && "late", result.work_lost && "work lost"].filter(Boolean);
  const waits = check?.result === result.id && isToLand(check) ? "◇ passed, waiting to be landed" : "◇ waiting for validation";
  const label = isWaiting(result) ? waits : `✗ refused: ${result.reason}`;
  const isOpen = result.accepted || isWaiting(result);
  return html`<details class=${`result ${result.accepted ? "good" : "odd"}`} open=${isOpen}>
    <summary>
      <b>${result.accepted ? "✓ accepted" : label} </b>
      <span class="faint text">
        ${[`generation ${result.generation}`, result.agent, ...more].join(", ")}${", "}
        <${Time} at=${result.submitted_at} />
      </span>
    </summary>
    ${result.summary && html`<${Markdown} text=${result.summary} />`}
    ${result.work_product_ref && html`<p class="mono faint text">${result.work_product_ref}</p>`}
    ${isThere(result.data) && (typeof result.data === "string"
      ? html`<${Markdown} text=${result.data} />` : html`<${Value} value=${result.data} />`)}
  </details>`;
}

function Checkpoint({ checkpoint }) {
  if (!checkpoint) return null;
  return html`<${Panel} title="Checkpoint">
    <p class="faint text">
      by ${checkpoint.agent} in generation ${checkpoint.generation}, <${Time} at=${checkpoint.at} />
    </p>
    <${Value} value=${checkpoint.data} />
  <//>`;
}

function Log({ log, project }) {
  return html`<${Loaded} of=${log} lines=${6}>${({ items }) => items.length
    ? html`<ol class="events">${[...items].reverse().map((event) =>
        html`<${Line} key=${event.sequence} project=${project} event=${event} withTask=${false} />`)}</ol>`
    : html`<${Empty} title="No events" />`}<//>`;
}

function About({ project, task }) {
  const list = (filter, label, look = "text") =>
    html`<a class=${look} href=${address(project, "tasks", null, filter)}>${label}</a> `;
  const when = (instant) => instant && html`<${Time} at=${instant} />`;
  return html`<${Facts} of=${[
    ["Track", list({ track: task.track }, task.track)],
    ["Type", list({ type: task.type }, task.type)],
    ["Priority", `${task.tier} (${task.priority})`],
    task.tags?.length && ["Tags", task.tags.map((tag) => list({ tag }, tag, "tag text"))],
    ["Held by", task.agent],
    task.session && ["Session", html`<span class="mono">${task.session}</span>`],
    ["Claimed", when(task.claimed_at)],
    task.agent && ["Lease ends", when(task.lease_until)],
    ["Generation", String(task.generation)],
    ["Attempts", `${task.attempts} of ${task.max_attempts}`],
    task.run > 1 && ["Run", task.run],
    task.offer_to && ["Offered to", html`${task.offer_to}, until ${when(task.offer_until)}`],
    task.state === "retrying" && ["Retried", when(task.retry_at)],
    ["Deadline", when(task.deadline)],
    ["Not before", when(task.not_before)],
    task.work_product && ["Work product", html`<span class="mono">${task.work_product}</span>`],
    ["Created by", task.created_by && (nameIn(task.created_by) || "a person")],
    ["Created", when(task.created_at)],
    ["Changed", when(task.updated_at)],
    task.state === "completed" && ["Completed", when(task.completed_at)],
  ]} />`;
}

function Links({ project, task }) {
  const link = (key, state = null) => html`<li key=${key}>
    ${state && html`<${State} state=${state} short />`}<${TaskLink} project=${project} task=${key} class="mono clip" />
  </li>`;
  const parts = [
    ["Depends on", (task.depends_on ?? []).map((one) => link(one.key, one.state))],
    ["Blocks", (task.blocks ?? []).map((key) => link(key))],
    ["Subtasks", (task.subtasks ?? []).map((key) => link(key))],
    ["Parent", task.parent ? [link(task.parent)] : []],
  ].filter(([, links]) => links.length);
  return html`
    ${parts.map(([name, links]) => html`<div key=${name} class="part">
      <h3>${name} <span class="faint">${links.length}</span></h3>
      <ul class="links">${links.slice(0, MOST_LINKS)}</ul>
      ${links.length > MOST_LINKS && html`<p class="faint">and ${links.length - MOST_LINKS} more</p>`}
    </div>`)}
    ${!parts.length && html`<p class="faint">No dependencies.</p>`}
    ${task.dag && html`<p><a href=${address(project, "dags", task.dag)}>Show the dag</a></p>`}`;
}

function Cost({ usage }) {
  if (!usage) return null;
  const tokens = ["fresh", "cached", "written", "output"].reduce((sum, name) => sum + (usage[name] ?? 0), 0);
  return html`<${Panel} title="Cost"><${Facts} of=${[
    ["Cost", dollars(usage.cost_usd)],
    ["Tokens", briefNumber(tokens)],
    ["Output", briefNumber(usage.output ?? 0)],
    ["Compute", usage.duration ? lasting(usage.duration) : NOTHING],
    ["Models", usage.models?.join(", ")],
    usage.doubtful_usd && ["Doubtful, not counted", dollars(usage.doubtful_usd)],
    usage.rejected_usd && ["Rejected", dollars(usage.rejected_usd)],
    usage.late && ["Late", dollars(usage.late.cost_usd)],
    usage.unpriced > 0 && ["Without a price", counted(usage.unpriced, "report")],
  ]} /><//>`;
}

// The budgets of the task. Its own budget is found by a cursor just before its id.
function Budgets({ project, task }) {
  const shared = useQuery(path(project, "budgets"), { limit: 1000 }, { pause: 2000 });
  const near = { scope: "task", after: `task:${task.id.slice(0, -1)}`, limit: 100 };
  const own = useQuery(path(project, "budgets"), near, { pause: 2000 });
  const mine = ["tenant", "project", `dag:${task.dag}`, `agent:${task.agent}`, `task:${task.id}`];
  const all = [...(shared.data?.items ?? []), ...(own.data?.items ?? [])];
  const found = useTitled(project, all.filter(({ id }) => mine.includes(id)));
  if (!found.length) return null;
  return html`<${Panel} title="Counts in"><div class="budget-lines">${found.map((budget) => html`
    <${BudgetLine} key=${budget.id} project=${project} budget=${budget} />`)}</div><//>`;
}
