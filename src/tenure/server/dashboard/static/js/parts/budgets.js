// A budget as a bar: spent, reserved by live claims, left. Used on every page with budgets.
import { path } from "../api.js";
import { html, useMemo } from "../html.js";
import { useQuery } from "../query.js";
import { address } from "../router.js";
import { amount } from "../format.js";

const WARN = 90; // per cent

export const toneOf = (budget) => (budget.percent >= 100 ? "bad" : budget.percent >= WARN ? "odd" : "good");

const SCOPES = { project: "The whole project", tenant: "All projects together" };

// The name of its scope: the dag's, task's or agent's name.
export const nameOf = (budget) => budget.title ?? SCOPES[budget.id] ?? budget.task ?? idOf(budget);
export const idOf = (budget) => budget.id.slice(budget.id.indexOf(":") + 1);

// The budgets, with titles for those of dags. Dags are only requested if there is such a budget.
export function useTitled(project, budgets) {
  const isAsked = budgets.some((budget) => budget.scope === "dag");
  const dags = useQuery(isAsked && path(project, "dags"), {}, { pause: 10_000 });
  return useMemo(() => {
    const titles = Object.fromEntries((dags.data?.items ?? []).map((dag) => [`dag:${dag.id}`, dag.title || dag.plan]));
    return budgets.map((budget) => (titles[budget.id] ? { ...budget, title: titles[budget.id] } : budget));
  }, [budgets, dags.data]);
}

export function BudgetBar({ budget }) {
  const formatted = (value) => amount(budget.currency, value);
  const parts = [
    ["spent", budget.consumed, toneOf(budget)], ["reserved", budget.reserved, "work"],
    ["left", budget.remaining, "none"],
  ];
  const label = parts.map(([name, value]) => `${formatted(value)} ${name}`).join(", ");
  return html`<div class="bar" role="img" aria-label=${label} title=${label}>
    ${parts.filter(([, value]) => Number(value) > 0).map(([name, value, tone]) => html`
      <span key=${name} class=${`fill ${tone}`} style=${{ flexGrow: Number(value) }}></span>`)}
  </div>`;
}

// A short form: link, bar, amounts.
export function BudgetLine({ project, budget }) {
  const of = (name) => amount(budget.currency, budget[name]);
  return html`<a class="budget-line" href=${address(project, "budgets", null, { open: budget.id })}>
    <span class="budget-line-head">
      <span class="text clip">${budget.scope === "project" ? "Project" : `${budget.scope} ${nameOf(budget)}`}</span>
      <span class=${`figures ${budget.percent >= 100 ? "bad-text" : "faint"}`}>${`${budget.percent} %`}</span>
    </span>
    <${BudgetBar} budget=${budget} />
    <span class="faint">${`${of("remaining")} left of ${of("allocated")}`}</span>
  </a>`;
}
