// What the choice of models saved, and how near estimates came: whole on the usage page, in short on the overview.
import { path } from "../api.js";
import { html } from "../html.js";
import { useLook } from "../look.js";
import { BudgetLine, useTitled } from "../parts/budgets.js";
import { Looked } from "../parts/notices.js";
import { Panel } from "../parts/panels.js";
import { address } from "../router.js";
import { NOTHING, briefNumber, counted, dollars, number, percent } from "../words.js";

const MOST_MODELS = 5;
const MOST_BUDGETS = 4;
const RARELY = { pause: 10_000 };

export function Savings({ project }) {
  const saved = useLook(path(project, "savings"), {}, RARELY);
  return html`<${Panel} title="What choosing models saved">
    <${Looked} of=${saved} lines=${4}>${(data) => html`<${Saved} data=${data} />`}<//>
  <//>`;
}

function Saved({ data }) {
  if (!data.tiers.length) return html`<p class="faint">No model of the tiers was used yet.</p>`;
  const row = (tier) => html`<tr key=${tier.tier}>
    <td><b>${tier.tier}</b> <span class="faint text">${tier.models.join(", ")}</span></td>
    <td class="figures">${briefNumber(tier.tokens)}</td>
    <td class="figures">${dollars(tier.cost_usd)}</td>
    <td class="figures">${dollars(tier.middle_usd)}</td>
    <td class="figures strong">${dollars(tier.saved_usd)}</td>
  </tr>`;
  return html`
    <p class="lead">${savedWords(data)}</p>
    <div class="scroll"><table class="table close">
      <thead><tr>
        <th>Tier</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">All middle</th>
        <th class="right">Saved</th>
      </tr></thead>
      <tbody>${data.tiers.map(row)}</tbody>
    </table></div>
    <p class="note">By the table of prices, against the same tokens in the middle tier.
      ${data.unknown.length > 0 && ` Not counted: ${data.unknown.map((one) => one.model).join(", ")}.`}</p>`;
}

function savedWords(data) {
  const difference = Number(data.saved_usd);
  const share = data.saved === null ? "" : `, ${percent(Math.abs(data.saved))} of ${dollars(data.middle_usd)}`;
  if (difference < 0) return `Dearer models cost ${dollars(-difference)} more than all in the middle tier${share}`;
  return `The choice of models saved ${dollars(data.saved_usd)}${share}`;
}

export function Estimates({ project }) {
  const estimates = useLook(path(project, "estimates"), {}, RARELY);
  return html`<${Panel} title="Estimates against what tasks took">
    <${Looked} of=${estimates} lines=${4}>${(data) => html`<${Goodness} data=${data} />`}<//>
  <//>`;
}

function Goodness({ data }) {
  if (!data.tasks) return html`<p class="faint">No finished task has told yet what it took.</p>`;
  const row = (type) => html`<tr key=${type.type}>
    <td class="text">${type.type}</td>
    <td class="figures">${`${number(type.estimated)} of ${number(type.tasks)}`}</td>
    <td class="figures">${share(type.median_error)}</td>
    <td class="figures">${share(type.within)}</td>
    <td class="figures">${type.sizes.filter((size) => size.is_used).length || NOTHING}</td>
  </tr>`;
  return html`
    <p class="lead">${goodWords(data)}</p>
    <div class="scroll"><table class="table close">
      <thead><tr>
        <th>Type</th><th class="right">Estimated</th><th class="right">Median error</th>
        <th class="right">Within 20 %</th><th class="right" title="sizes of which enough is known">Sizes known</th>
      </tr></thead>
      <tbody>${data.types.map(row)}</tbody>
    </table></div>
    <p class="note">Of the last tasks of each type. Where enough is known, the next is estimated from them.</p>`;
}

const share = (value) => (value === null ? NOTHING : percent(value));

function goodWords(data) {
  if (data.median_error === null) return `${counted(data.tasks, "task")} told what it took; none had an estimate`;
  const within = `${percent(data.within)} of them by at most 20 %`;
  return `Estimates were off by ${percent(data.median_error)} (median), ${within}`;
}

// On the overview: budgets, the dearest models, and both of the above in a sentence.
export function Money({ project, now }) {
  const isSpent = Number(now.usage?.cost_usd ?? 0) > 0;
  const models = useLook(isSpent && path(project, "usage"), { by: "model", limit: MOST_MODELS }, { pause: 5000 });
  const saved = useLook(isSpent && path(project, "savings"), {}, RARELY);
  const estimates = useLook(isSpent && path(project, "estimates"), {}, RARELY);
  const budgets = useTitled(project, (now.budgets ?? []).slice(0, MOST_BUDGETS));
  if (!isSpent && !budgets.length) return null;
  const sentences = [
    saved.data?.tiers.length > 0 && savedWords(saved.data), estimates.data?.tasks > 0 && goodWords(estimates.data),
  ].filter(Boolean);
  return html`<div class=${`columns ${isSpent && budgets.length ? "two" : ""}`}>
    ${isSpent && html`<section class="panel">
      <div class="panel-head"><h2>Cost by model</h2><a href=${address(project, "usage")}>All of it</a></div>
      <${Looked} of=${models} lines=${3}>${({ items }) => html`<${ByModel} items=${items} />`}<//>
      ${sentences.map((sentence) => html`<p key=${sentence} class="note">${sentence}.</p>`)}
    </section>`}
    ${budgets.length > 0 && html`<section class="panel">
      <div class="panel-head"><h2>Budgets</h2><a href=${address(project, "budgets")}>All</a></div>
      <div class="budget-lines">${budgets.map((budget) => html`
        <${BudgetLine} key=${budget.id} project=${project} budget=${budget} />`)}</div>
    </section>`}
  </div>`;
}

function ByModel({ items }) {
  const dearest = Math.max(...items.map((row) => Number(row.cost_usd ?? 0)), 1e-12);
  return html`<table class="plain-table"><tbody>${items.map((row) => html`<tr key=${row.model}>
    <td class="model-cell text">${row.model}</td>
    <td class="grow"><span class="meter">
      <span class="fill" style=${{ width: `${(100 * Number(row.cost_usd ?? 0)) / dearest}%` }}></span>
    </span></td>
    <td class="figures">${dollars(row.cost_usd)}</td>
  </tr>`)}</tbody></table>`;
}
