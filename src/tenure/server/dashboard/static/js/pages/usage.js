// Tokens and cost: in total, and by model, agent, task or session.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Tile } from "../parts/panels.js";
import { TaskLink, filter, useRoute } from "../router.js";
import { NOTHING, briefNumber, counted, dollars, lasting, number } from "../format.js";
import { Estimates, Savings } from "./money.js";

const BY = [["model", "Model"], ["agent", "Agent"], ["task", "Task"], ["session", "Session"]];
const TOKENS = [["fresh", "Fresh input"], ["cached", "Cached"], ["written", "Written to cache"], ["output", "Output"]];
const ARCHIVED = "(archived)"; // all archived tasks

const tokensOf = (row) => TOKENS.reduce((sum, [name]) => sum + (row[name] ?? 0), 0);

export function Usage({ project, status }) {
  const { query } = useRoute();
  const by = BY.some(([name]) => name === query.get("by")) ? query.get("by") : "model";
  const spent = useQuery(path(project, "usage"), { by, limit: 200 }, { pause: 3000 });
  return html`
    <header class="page-head">
      <h1>Usage</h1>
      <${Tabs} label="Group by" value=${by} options=${BY}
        onChange=${(value) => filter({ by: value === "model" ? "" : value })} />
    </header>
    ${status.data && html`<${Totals} all=${status.data.usage} />`}
    <${Loaded} of=${spent} what="Loading the usage">${({ items }) => items.length
      ? html`<${Rows} project=${project} by=${by} items=${items} />`
      : html`<${Empty} title="No usage reported">
          <p>Runners and the SDK report tokens and cost.</p>
          <p><code>tenure run</code> reads them from the agent's output; <code>tenure usage add</code> reports others.</p>
        <//>`}<//>
    ${spent.data?.items.length > 0 && html`<div class="columns two below">
      <${Savings} project=${project} /><${Estimates} project=${project} />
    </div>`}`;
}

function Totals({ all }) {
  const priced = all.unpriced ? `${counted(all.unpriced, "report")} without a price` : "all priced";
  return html`<div class="tiles">
    <${Tile} label="Cost" value=${dollars(all.cost_usd)}>${priced}<//>
    ${TOKENS.map(([name, label]) => html`
      <${Tile} key=${name} label=${label} value=${briefNumber(all[name] ?? 0)}>tokens<//>`)}
    <${Tile} label="Late" value=${dollars(all.late?.cost_usd ?? "0")}>reported after a claim was lost<//>
  </div>`;
}

function Rows({ project, by, items }) {
  // Bars show cost, or tokens if there is no price.
  const dearest = Math.max(...items.map((row) => Number(row.cost_usd ?? 0)), 1e-12);
  const most = Math.max(...items.map(tokensOf), 1);
  const share = (row) => (row.cost_usd === null ? tokensOf(row) / most : Number(row.cost_usd) / dearest);
  return html`<div class="scroll panel flush" tabindex="0"><table class="table">
    <thead><tr>
      <th>${BY.find(([name]) => name === by)[1]}</th><th>Share</th><th class="right">Cost</th>
      ${TOKENS.map(([name, label]) => html`<th key=${name} class="right">${label}</th>`)}
      <th class="right">Compute</th>
    </tr></thead>
    <tbody>${items.map((row) => html`<tr key=${row[by]}>
      <td><${Name} project=${project} by=${by} row=${row} /></td>
      <td class="grow">
        <span class="meter"><span class="fill" style=${{ width: `${100 * share(row)}%` }}></span></span>
      </td>
      <td class="figures strong">${dollars(row.cost_usd)}</td>
      ${TOKENS.map(([name]) => html`<td key=${name} class="figures" title=${number(row[name] ?? 0)}>
        ${briefNumber(row[name] ?? 0)}
      </td>`)}
      <td class="figures">${row.duration ? lasting(row.duration) : NOTHING}</td>
    </tr>`)}</tbody>
  </table></div>`;
}

function Name({ project, by, row }) {
  const isTask = by === "task" && row.task !== ARCHIVED;
  const late = row.late && `${dollars(row.late.cost_usd)} late`;
  return html`
    ${isTask
      ? html`<${TaskLink} project=${project} task=${row.task} class="mono" />`
      : html`<span class="text">${row[by]}</span>`}
    ${row.doubtful_usd && html` <span class="tag odd" title="far above its tokens: no budget counts it until a person \
confirms it">${dollars(row.doubtful_usd)} doubtful</span>`}
    ${late && html` <span class="tag odd" title="reported after the claim was lost">${late}</span>`}`;
}
