// Everything that waits for a person, the longest wait first: the same as `tenure todo`, with the actions.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Chips } from "../parts/filters.js";
import { Markdown } from "../parts/markdown.js";
import { Empty, Loaded } from "../parts/notices.js";
import { TaskLink, address, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { counted, nameIn } from "../format.js";
import { Actions } from "./task-actions.js";

const MOST = 200;

// `state`, `cause`: what the actions of the task depend on. `only`: ids of actions in pages/task-actions.js.
const WAITS = {
  question: { label: "Question", tone: "odd", state: "paused", cause: "question", only: ["answer", "cancel"] },
  review: { label: "Review", tone: "odd", state: "validating", only: ["approve", "reject"] },
  "dead letter": { label: "Dead letter", tone: "bad", state: "dead_lettered", only: ["retry", "modify", "cancel"] },
  budget: { label: "Budget", tone: "bad", state: "paused", cause: "budget", only: ["override", "cancel"] },
  "doubtful cost": { label: "Doubtful cost", tone: "odd", isDoubtful: true, only: ["confirm-usage", "reject-usage"] },
  landing: { label: "Landing", tone: "odd", state: "validating", isToLand: true, only: ["reject"] },
  lost: { label: "Lost holder", tone: "odd", state: "paused", cause: "lost", only: ["resume", "cancel"] },
};

export function Todo({ project }) {
  const { query } = useRoute();
  const wanted = query.getAll("what");
  const todo = useQuery(path(project, "todo"), { limit: MOST }, { pause: 2000 });
  const shown = (items) => (wanted.length ? items.filter((entry) => wanted.includes(entry.what)) : items);
  return html`
    <header class="page-head"><h1>For a person</h1></header>
    <${Loaded} of=${todo} what="Loading what waits for a person">${({ items }) => html`
      ${items.length > 0 && html`<div class="filters"><${Chips} label="Kind" values=${wanted}
        options=${Object.keys(WAITS).map((what) => [what, `${WAITS[what].label} ${count(items, what)}`])}
        onChange=${(what) => filter({ what })} /></div>`}
      ${shown(items).length
        ? html`<ul class="letters">${shown(items).map((entry) => html`
            <${Entry} key=${`${entry.what} ${entry.task}`} project=${project} entry=${entry} />`)}</ul>`
        : html`<${Empty} title="Nothing waits for a person">
            Questions of agents, results to review, dead letters, pauses by a budget, doubtful costs and blocked landings
            appear here.
          <//>`}
      ${items.length === MOST && html`<p class="note">The ${MOST} longest waits.</p>`}`}<//>`;
}

const count = (items, what) => items.filter((entry) => entry.what === what).length;

function Entry({ project, entry }) {
  const { label, tone, state, cause, isDoubtful, isToLand, only } = WAITS[entry.what];
  const usage = isDoubtful ? { doubtful_usd: true } : undefined;
  const validation = isToLand ? { phase: entry.do.includes("reject") ? "land" : "landing" } : undefined;
  const task = { key: entry.key, state, usage, validation, pauses: cause ? [{ cause }] : undefined };
  return html`<li class="panel waits" data-key=${entry.key} data-what=${entry.what}>
    <div class="dead-head">
      <span class=${`tag ${tone}`}>${label}</span>
      <${TaskLink} project=${project} task=${entry.key} class="mono strong" title=${entry.key}>${entry.ref}<//>
      <${TaskLink} project=${project} task=${entry.key} class="text title-link">${entry.title}<//>
      <span class="spacer"></span>
      <span class="faint"><${Time} at=${entry.since} /></span>
    </div>
    <${Markdown} text=${entry.text.replace(/^question: /, "")} />
    <p class="faint text">
      ${nameIn(entry.by) && `from ${nameIn(entry.by)} · `}
      ${entry.blocks ? counted(entry.blocks, "task waits", "tasks wait") + " behind it" : "no task waits behind it"}
      ${isToLand && html` · in a checkout: <span class="mono">tenure land ${entry.ref}</span>`}
      ${entry.what === "budget" && html` · <a href=${address(project, "budgets")}>Budgets</a>`}
    </p>
    <${Actions} project=${project} task=${task} only=${only} />
  </li>`;
}
