// The forecast: when the open tasks end, what they cost, and what decides it.
import { command, path } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Empty, Failure, Loading } from "../parts/notices.js";
import { Panel, Tile } from "../parts/panels.js";
import { TaskLink, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { NOTHING, amount, counted, dollars, lasting, moment, number, shortKey } from "../format.js";

const WAITS = { dependency: "the task above", agent: "an agent", time: "its time", start: NOTHING };
const AGENTS = {
  given: "as chosen", "active now": "active now", assumed: "assumed: none is active", pool: "the pool's size",
};
const SOURCES = {
  "like tasks": "from finished tasks of their type and size", "same type": "from finished tasks of their type",
  "other tasks": "from other finished tasks", estimate: "from their own estimates", nothing: "15 minutes assumed",
};
const causes = (found) => Object.entries(found.left_out_why).map(([why, count]) => `${why}: ${number(count)}`).join(", ");
const share = (part) => `${Math.round(100 * part)} %`;

// Played when the page opens and on request: a forecast costs the server seconds, so it does not follow every change.
export function Forecast({ project }) {
  const { query } = useRoute();
  const agents = Number(query.get("agents")) || null;
  const [turn, again] = useState(0);
  const [{ data, error, isLoading }, set] = useState({ data: null, error: null, isLoading: true });
  useEffect(() => {
    let isOver = false;
    set((before) => ({ ...before, isLoading: true }));
    command(path(project, "forecast"), agents ? { agents } : {})
      .then((found) => !isOver && set({ data: found, error: null, isLoading: false }))
      .catch((failed) => !isOver && set({ data: null, error: failed, isLoading: false }));
    return () => {
      isOver = true;
    };
  }, [project, agents, turn]);
  return html`
    <header class="page-head">
      <h1>Forecast</h1>
      <form class="forecast-form" onSubmit=${(event) => submitted(event, again)}>
        <label>Agents <input name="agents" type="number" min="1" max="1000" class="input narrow"
          value=${agents ?? ""} placeholder=${data?.agents ?? ""} /></label>
        <button class="button" disabled=${isLoading}>${isLoading ? "Playing …" : "Forecast"}</button>
      </form>
    </header>
    ${error && html`<${Failure} error=${error} />`}
    ${!data && isLoading && html`<${Loading} what="Playing the open tasks" />`}
    ${data?.finish && html`<${Found} project=${project} found=${data} />`}
    ${data && !data.finish && html`<${Nothing} project=${project} found=${data} />`}`;
}

function submitted(event, again) {
  event.preventDefault();
  filter({ agents: event.target.elements.agents.value });
  again((turn) => turn + 1);
}

function Nothing({ project, found }) {
  return html`<${Empty} title=${found.tasks ? "No run ends any task" : "No open tasks"}>
    <p>${found.tasks ? `None of ${counted(found.tasks, "open task")} ends.` : "Add tasks or apply a plan; then come back."}</p>
  <//><${LeftOut} project=${project} found=${found} />`;
}

function Found({ project, found }) {
  const { finish, cost, one_more: more, left_out_count: missing } = found;
  const about = missing
    ? `${number(found.tasks - missing)} of ${counted(found.tasks, "open task")}` : counted(found.tasks, "open task");
  return html`
    ${missing > 0 && html`<div class="banner odd" role="status">
      <strong>${`The figures are of ${about}.`}</strong> ${`No run ends the others (${causes(found)}).`}
    </div>`}
    <div class="tiles">
      <${Tile} label="Half of the runs end within" value=${lasting(finish.p50)}>${moment(finish.p50_at)}<//>
      <${Tile} label="9 of 10 runs end within" value=${lasting(finish.p90)}>${moment(finish.p90_at)}<//>
      <${Tile} label="Cost" value=${cost ? dollars(cost.p50) : NOTHING}>${cost
        ? `9 of 10 runs: at most ${dollars(cost.p90)}` : "no usage and no estimates"}<//>
      <${Tile} label=${`One agent more (${more.agents})`} value=${more.saves >= 1 ? lasting(more.saves) : "no gain"}>
        ${more.saves >= 1 ? "sooner" : "other things decide"}<//>
      <${Tile} label="Guessed" value=${share(found.guessed)} tone=${found.guessed > 0.5 ? "odd" : ""}>of the work<//>
    </div>
    <p class="quiet">${about}, ${counted(found.agents, "agent")} \
(${AGENTS[found.agents_are] ?? found.agents_are}), ${number(found.runs)} runs. ${found.dead_letters > 0
      && `A task fails for good in ${share(found.dead_letters)} of the runs and needs a person.`}</p>
    <div class="stack wide-gap below-panel"><${Budgets} found=${found} />
    <${Panel} title="The path that decides" flush>
      <div class="scroll" tabindex="0"><table class="table">
        <thead><tr><th>Task</th><th>Title</th><th class="right">Begins in</th><th class="right">Ends in</th>
          <th>Waits for</th><th class="right">Of all runs</th></tr></thead>
        <tbody>${found.path.map((step) => html`<tr key=${step.key}>
          <td class="fit"><${TaskLink} project=${project} task=${step.key} class="mono">${shortKey(step.key)}<//></td>
          <td class="text">${step.title}</td>
          <td class="figures">${lasting(step.begins)}</td><td class="figures">${lasting(step.ends)}</td>
          <td>${WAITS[step.why]}</td><td class="figures">${share(step.share)}</td>
        </tr>`)}</tbody>
      </table></div>
    <//></div>
    <div class="columns two below"><${Sources} found=${found} /><${LeftOut} project=${project} found=${found} /></div>`;
}

function Budgets({ found }) {
  if (!found.budgets.length) return null;
  return html`<${Panel} title="Budgets">
    <ul class="stack">${found.budgets.map((budget) => html`<li key=${budget.id}>
      <span class="mono">${budget.id}</span>: ${amount(budget.currency, budget.left)} left; ${budget.lasts === 1
        ? "it lasts"
        : html`<span class="problem">it lasts in ${share(budget.lasts)} of the runs; else it is spent</span> \
<${Time} at=${budget.ends_at} />`}
    </li>`)}</ul>
  <//>`;
}

function Sources({ found }) {
  return html`<${Panel} title="Where durations come from">
    <ul class="stack">${Object.entries(found.sources).map(([name, count]) => html`<li key=${name}>
      <b>${number(count)}</b> ${SOURCES[name] ?? name}</li>`)}
      <li class="faint">${counted(found.finished, "finished attempt")} known</li></ul>
  <//>`;
}

function LeftOut({ project, found }) {
  if (!found.left_out_count) return null;
  const more = found.left_out_count - found.left_out.length;
  return html`<${Panel} title=${`Not in it: ${counted(found.left_out_count, "open task")}`}>
    <p class="note">${causes(found)}</p>
    <ul class="stack">${found.left_out.map((one) => html`<li key=${one.key}>
      <${TaskLink} project=${project} task=${one.key} class="mono" /> <span class="text">${one.why}</span></li>`)}
      ${more > 0 && html`<li class="faint">and ${number(more)} more</li>`}</ul>
  <//>`;
}
