// Savings by the choice of models, and the accuracy of estimates: in full on the usage page, briefly on the overview.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { BudgetLine, useTitled } from "../parts/budgets.js";
import { Loaded } from "../parts/notices.js";
import { Panel } from "../parts/panels.js";
import { address } from "../router.js";
import { NOTHING, briefNumber, counted, dollars, number, percent } from "../format.js";

const MOST_MODELS = 5;
const MOST_BUDGETS = 4;
const RARELY = { pause: 10_000 };

export function Savings({ project }) {
  const saved = useQuery(path(project, "savings"), {}, RARELY);
  return html`<${Panel} title="Savings by model choice">
    <${Loaded} of=${saved} lines=${4}>${(data) => html`<${Saved} data=${data} />`}<//>
  <//>`;
}

function Saved({ data }) {
  if (!data.tiers.length) return html`<p class="faint">No model of the tiers has been used yet.</p>`;
  const row = (tier) => html`<tr key=${tier.tier}>
    <td><b>${tier.tier}</b> <span class="faint text">${tier.models.join(", ")}</span></td>
    <td class="figures">${briefNumber(tier.tokens)}</td>
    <td class="figures">${dollars(tier.cost_usd)}</td>
    <td class="figures">${dollars(tier.middle_usd)}</td>
    <td class="figures strong">${dollars(tier.saved_usd)}</td>
  </tr>`;
  return html`
    <p class="lead">${savedWords(data)}</p>
    <div class="scroll" tabindex="0"><table class="table close">
      <thead><tr>
        <th>Tier</th><th class="right">Tokens</th><th class="right">Cost</th><th class="right">All middle</th>
        <th class="right">Saved</th>
      </tr></thead>
      <tbody>${data.tiers.map(row)}</tbody>
    </table></div>
    <p class="note">By list prices, compared with the same tokens in the middle tier.
      ${data.unknown.length > 0 && ` Not counted: ${data.unknown.map((one) => one.model).join(", ")}.`}</p>`;
}

function savedWords(data) {
  const difference = Number(data.saved_usd);
  const share = data.saved === null ? "" : `, ${percent(Math.abs(data.saved))} of ${dollars(data.middle_usd)}`;
  if (difference < 0) return `More expensive models cost ${dollars(-difference)} more than the middle tier${share}`;
  return `The choice of models saved ${dollars(data.saved_usd)}${share}`;
}

export function Estimates({ project }) {
  const estimates = useQuery(path(project, "estimates"), {}, RARELY);
  return html`<${Panel} title="Estimates and actual usage">
    <${Loaded} of=${estimates} lines=${4}>${(data) => html`<${Goodness} data=${data} />`}<//>
  <//>`;
}

function Goodness({ data }) {
  if (!data.tasks) return html`<p class="faint">No finished task has reported its usage yet.</p>`;
  const row = (type) => html`<tr key=${type.type}>
    <td class="text">${type.type}</td>
    <td class="figures">${`${number(type.estimated)} of ${number(type.tasks)}`}</td>
    <td class="figures">${share(type.median_error)}</td>
    <td class="figures">${share(type.within)}</td>
    <td class="figures">${type.sizes.filter((size) => size.is_used).length || NOTHING}</td>
  </tr>`;
  return html`
    <p class="lead">${goodWords(data)}</p>
    <div class="scroll" tabindex="0"><table class="table close">
      <thead><tr>
        <th>Type</th><th class="right">Estimated</th><th class="right">Median error</th>
        <th class="right">Within 20 %</th><th class="right" title="sizes with enough finished tasks">Sizes known</th>
      </tr></thead>
      <tbody>${data.types.map(row)}</tbody>
    </table></div>
    <p class="note">For the last tasks of each type. With enough of them, new tasks are estimated from their use.</p>`;
}

const share = (value) => (value === null ? NOTHING : percent(value));

function goodWords(data) {
  if (data.median_error === null) return `${counted(data.tasks, "task")} reported usage; none had an estimate`;
  const within = `${percent(data.within)} of them by at most 20 %`;
  return `Estimates were off by ${percent(data.median_error)} (median), ${within}`;
}

// For the overview: budgets, the most expensive models, and both of the above in one sentence each.
export function Money({ project, now }) {
  const isSpent = Number(now.usage?.cost_usd ?? 0) > 0;
  const models = useQuery(isSpent && path(project, "usage"), { by: "model", limit: MOST_MODELS }, { pause: 5000 });
  const saved = useQuery(isSpent && path(project, "savings"), {}, RARELY);
  const estimates = useQuery(isSpent && path(project, "estimates"), {}, RARELY);
  const budgets = useTitled(project, (now.budgets ?? []).slice(0, MOST_BUDGETS));
  if (!isSpent && !budgets.length) return null;
  const sentences = [
    saved.data?.tiers.length > 0 && savedWords(saved.data), estimates.data?.tasks > 0 && goodWords(estimates.data),
  ].filter(Boolean);
  return html`<div class=${`columns ${isSpent && budgets.length ? "two" : ""}`}>
    ${isSpent && html`<section class="panel">
      <div class="panel-head"><h2>Cost by model</h2><a href=${address(project, "usage")}>All</a></div>
      <${Loaded} of=${models} lines=${3}>${({ items }) => html`<${ByModel} items=${items} />`}<//>
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
