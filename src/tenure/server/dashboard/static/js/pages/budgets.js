// The budgets: amounts, burn-down and projection. Admins set them here.
import { path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useAdmin } from "../me.js";
import { BudgetBar, idOf, nameOf, toneOf, useTitled } from "../parts/budgets.js";
import { BurnDown } from "../parts/burn-down.js";
import { Ask } from "../parts/dialogs.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { TaskLink, address, filter, useRoute } from "../router.js";
import { Time, useNow } from "../time.js";
import { amount, counted, lasting, moment, number } from "../format.js";
import { changing, making, moving, raising, removing } from "./budget-actions.js";

const WHICH = [["", "Project, dags, agents"], ["task", "Single tasks"]];
const MOST = 200;

export function Budgets({ project }) {
  const { query } = useRoute();
  const opened = query.get("open") ?? "";
  const scope = query.get("scope") === "task" || opened.startsWith("task:") ? "task" : "";
  const budgets = useQuery(path(project, "budgets"), { scope, limit: MOST }, { pause: 1000 });
  const [asked, ask] = useState(null);
  const isAdmin = useAdmin();
  const items = useTitled(project, budgets.data?.items ?? []);
  const first = opened || (items.length && items[0].id);
  return html`
    <header class="page-head">
      <h1>Budgets</h1>
      <${Tabs} label="Scope" value=${scope} options=${WHICH}
        onChange=${(value) => filter({ scope: value, open: "" })} />
      ${isAdmin && html`<button class="button primary" onClick=${() => ask(making(project))}>Set a budget</button>`}
    </header>
    <${TasksNear} project=${project} isShown=${!scope} />
    <${Loaded} of=${budgets} what="Loading the budgets">${() => items.length
      ? html`<ul class="letters">${items.map((budget) => html`<${Budget} key=${budget.id} project=${project}
          budget=${budget} others=${items} ask=${isAdmin ? ask : null} isFirst=${budget.id === first} />`)}</ul>
          ${items.length === MOST && html`<p class="note">The first ${number(MOST)}.</p>`}`
      : html`<${None} scope=${scope} />`}<//>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function None({ scope }) {
  if (scope) {
    return html`<${Empty} title="No task has its own budget">
      <p>A task's budget covers all its attempts and subtasks:</p>
      <pre class="terminal" tabindex="0">tenure budget set task:B-003 --usd 2.50</pre>
    <//>`;
  }
  return html`<${Empty} title="No budgets yet">
    <p>A budget limits what a project, dag, task or agent may spend. Each claim reserves the estimate of its task, and
      is denied if the budget has too little left; the unused part is returned.</p>
    <pre class="terminal" tabindex="0">tenure budget set --usd 20 --period month</pre>
  <//>`;
}

// Budgets of tasks are on another tab: this shows their alerts.
function TasksNear({ project, isShown }) {
  const alerts = useQuery(isShown && path(project, "alerts"), {}, { pause: 2000 });
  const near = new Set((alerts.data?.items ?? []).map((alert) => alert.budget).filter((id) => id.startsWith("task:")));
  if (!isShown || !near.size) return null;
  return html`<p class="banner">
    ${`${counted(near.size, "task has", "tasks have")} used at least half of the budget. `}
    <a href=${address(project, "budgets", null, { scope: "task" })}>Show them</a>
  </p>`;
}

function Budget({ project, budget, others, ask, isFirst }) {
  const [isOpen, open] = useState(isFirst);
  const of = (name) => amount(budget.currency, budget[name]);
  return html`<li class="panel budget" data-budget=${budget.id}>
    <div class="dead-head">
      <h2 class="text"><${Name} project=${project} budget=${budget} /></h2>
      <span class="tag">${budget.scope}</span>
      ${budget.throttle && html`
        <span class="tag" title="claims are delayed if the budget would run out early">throttled</span>`}
      <span class="spacer"></span>
      <b class=${toneOf(budget) === "bad" ? "bad-text" : ""}>${`${budget.percent} % spent`}</b>
    </div>
    <${BudgetBar} budget=${budget} />
    <p class="budget-figures">
      <span><i class=${`swatch ${toneOf(budget)}`}></i>spent <b>${of("consumed")}</b></span>
      <span><i class="swatch work"></i>reserved <b>${of("reserved")}</b></span>
      <span><i class="swatch"></i>left <b>${Number(budget.remaining) > 0 ? of("remaining") : "nothing"}</b> of ${of("allocated")}</span>
      ${budget.doubtful && html`<span title="reported far above what its tokens cost: it counts when a person confirms it">
        doubtful <b>${of("doubtful")}</b></span>`}
      <span class="faint"><${Period} budget=${budget} /></span>
    </p>
    <${Alerts} alerts=${budget.alerts} />
    <${Spaced} at=${budget.next_claim_at} />
    <details open=${isOpen} onToggle=${(event) => open(event.target.open)}>
      <summary>Burn-down and projection</summary>
      ${isOpen && html`<${Ahead} project=${project} listed=${budget} />`}
    </details>
    ${ask && html`<${Verbs} project=${project} budget=${budget} others=${others} ask=${ask} />`}
  </li>`;
}

function Name({ project, budget }) {
  const name = nameOf(budget);
  if (budget.task) return html`<${TaskLink} project=${project} task=${budget.task} class="mono" />`;
  if (budget.scope === "dag") return html`<a href=${address(project, "dags", idOf(budget))}>${name}</a>`;
  return name;
}

function Period({ budget }) {
  const isAhead = Date.parse(budget.begins_at) > useNow(); // no time: false
  if (isAhead) return html`starts <${Time} at=${budget.begins_at} />`;
  if (budget.ends_at) return html`ends <${Time} at=${budget.ends_at} />`;
  if (!budget.period) return "once";
  return html`each ${budget.period} (${budget.zone}), next period <${Time} at=${budget.until} />`;
}

function Alerts({ alerts }) {
  const look = (level) => (level >= 100 ? "bad" : level >= 90 ? "odd" : "");
  return alerts.length > 0 && html`<p class="alerts">${alerts.map((alert) => html`<span key=${alert.level}>
    <span class=${`tag ${look(alert.level)}`}>${`${alert.level} % reached`}</span>${" "}
    <span class="faint"><${Time} at=${alert.since} /></span>
  </span>`)}</p>`;
}

// Throttled: the next claim is delayed, so that the budget lasts.
function Spaced({ at }) {
  return Date.parse(at) > useNow() && html`<p class="banner odd">
    Claims are delayed so that the budget lasts: the next is granted <${Time} at=${at} />.
  </p>`;
}

function Ahead({ project, listed }) {
  const budget = useQuery(path(project, "budgets", listed.id), {}, { pause: 1000, follows: listed });
  const led = useQuery(path(project, "budgets", listed.id, "projection"), {}, { pause: 5000, follows: listed });
  const now = useNow();
  return html`<div class="budget-ahead">
    <${Loaded} of=${budget} lines=${4}>${(data) => html`
      <${BurnDown} budget=${data} projection=${led.data} now=${now} />`}<//>
    <${Loaded} of=${led} lines=${4}>${(data) => html`<${Projection} led=${data} />`}<//>
  </div>`;
}

const ADVICE = {
  CONTINUE: ["good", "On track", "at this rate it lasts for a week, or until its period ends"],
  THROTTLE: ["odd", "Slow down", "at this rate it is used up within a week, before its period ends"],
};

const USED_UP = ["bad", "Used up", "nothing is left of it"];
const UNDECIDED = ["", "Too early to say", "its spending has not been seen for long enough"];

function Projection({ led }) {
  const [tone, label, title] = led.days_left === 0 ? USED_UP : led.decided ? ADVICE[led.advice] : UNDECIDED;
  const of = (value) => amount(led.currency, value);
  const lasts = led.days_left === 0 ? "nothing is left of it" : led.exhausted_at && 
    `${lasting(led.days_left * 86_400)}, until ${moment(led.exhausted_at)}`;
  return html`<div class="stack">
    <p class="dot-label" title=${title}><i class=${`dot ${tone}`}></i><b>${label}</b>
      ${led.decided && html`<span class="mono faint">${led.advice}</span>`}</p>
    <${Facts} wide of=${[
      ["Lasts", lasts || (led.decided ? "nothing is being spent" : "not known yet")],
      ["Spent per day", `${of(led.last_day)} on the last day, ${of(led.last_week)} on average in the last week`],
      led.open_tasks && ["Open tasks", html`<${Shortfall} open=${led.open_tasks} of=${of} />`],
    ]} />
  </div>`;
}

function Shortfall({ open, of }) {
  if (!open.tasks) return "none";
  const isShort = Number(open.shortfall) > 0;
  return html`${`${counted(open.tasks, "task")} need about ${of(open.estimate)}; `}
    ${isShort ? html`<b class="bad-text">${of(open.shortfall)} missing</b>` : "the budget is sufficient"}`;
}

function Verbs({ project, budget, others, ask }) {
  const asks = [raising, changing, moving, removing];
  const [raise, change, move, remove] = asks.map((verb) => verb(project, budget, others));
  return html`<div class="card-actions">
    <button class=${`button small ${budget.percent >= 100 ? "primary" : ""}`} onClick=${() => ask(raise)}>Raise</button>
    <button class="button small" onClick=${() => ask(change)}>Change</button>
    ${move && html`<button class="button small" onClick=${() => ask(move)}>Move</button>`}
    <button class="button small danger-text" onClick=${() => ask(remove)}>Remove</button>
  </div>`;
}
