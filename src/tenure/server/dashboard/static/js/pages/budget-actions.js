// The actions of an admin on budgets, as dialogs; see Ask in parts/dialogs.js.
import { command, get, path } from "../api.js";
import { nameOf } from "../parts/budgets.js";
import { done } from "../parts/toasts.js";
import { amount } from "../format.js";

const SCOPES = [
  ["project", "the whole project"], ["agent", "one agent"], ["dag", "one dag"], ["task", "one task"],
  ["tenant", "all projects together"],
];
const CURRENCIES = [["usd", "dollars"], ["tokens", "tokens"]];
const PERIODS = [["once", "once"], ["day", "each day"], ["week", "each week"], ["month", "each month"]];
const MONEY = "\\d+(\\.\\d{1,9})?";
const TOKENS = "\\d+";
const isNamed = ({ scope }) => ["agent", "dag", "task"].includes(scope);
const repeats = ({ period }) => period !== "once";

const HOW_OFTEN = (period, zone) => [
  { name: "period", label: "Repeats", kind: "choice", options: PERIODS, value: period },
  { name: "zone", label: "Time zone", value: zone, when: repeats, hint: "For example Europe/Berlin." },
];
const throttling = (value) => (
  { name: "throttle", label: "Delay claims if the budget would run out early", kind: "check", value }
);

const hereZone = () => Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC";

// Commands on budgets cannot be undone.
const doing = (project, message, run) => done(project, message, run, { canUndo: false });

function set(project, scope, currency, { amount: text, default_estimate: estimate, ...fields }) {
  const sent = { ...fields };
  if (text) Object.assign(sent, currency === "usd" ? { usd: text } : { tokens: Number(text) });
  if (estimate) sent.default_estimate = estimate;
  return command(path(project, "budgets", scope), sent, "PUT");
}

export function making(project) {
  const known = { agent: [], dag: [], task: [] };
  offer(project, known);
  const run = ({ scope, name, currency, ...fields }) => {
    const id = name ? `${scope}:${name.trim()}` : scope;
    return doing(project, `Budget set: ${id}`, () => set(project, id, currency, fields));
  };
  return {
    title: "Set a budget",
    action: "Set",
    text: "A claim reserves in each budget of its task, and is denied if one has too little left.",
    fields: [
      { name: "scope", label: "For", kind: "choice", options: SCOPES, value: "project" },
      { name: "name", label: "Name", required: true, when: isNamed, options: ({ scope }) => known[scope] ?? [] },
      { name: "currency", label: "Unit", kind: "choice", options: CURRENCIES, value: "usd" },
      { name: "amount", label: "Amount", required: true, pattern: MONEY, hint: "For example 20 or 2.50." },
      ...HOW_OFTEN("once", hereZone()),
      throttling(false),
    ],
    run,
  };
}

// Suggestions load later: any text is valid, suggested or not.
async function offer(project, known) {
  const ask = (what, optionOf) => get(path(project, what)).then(({ items }) => items.map(optionOf), () => []);
  known.agent = await ask("agents", (agent) => agent.name);
  known.dag = await ask("dags", (dag) => [dag.id, dag.title || dag.plan || dag.id]);
}

const isMoney = (budget) => budget.currency === "usd";
const asked = (budget, name, label, more = {}) => ({
  name, label, value: String(budget[name === "amount" ? "allocated" : name]), required: true,
  pattern: isMoney(budget) ? MONEY : TOKENS, hint: isMoney(budget) ? "In dollars." : "In tokens.", ...more,
});

export function raising(project, budget) {
  return {
    title: `Raise: ${nameOf(budget)}`,
    action: "Raise",
    text: `It has ${amount(budget.currency, budget.remaining)} left. Tasks that it paused continue.`,
    fields: [asked(budget, "amount", "New total")],
    run: (values) => doing(project, `Raised: ${budget.id}`, () => set(project, budget.id, budget.currency, values)),
  };
}

export function changing(project, budget) {
  return {
    title: `Change: ${nameOf(budget)}`,
    action: "Change",
    fields: [
      asked(budget, "amount", "Total amount"),
      asked(budget, "default_estimate", "Reservation of a task without an estimate"),
      ...HOW_OFTEN(budget.period ?? "once", budget.zone),
      throttling(budget.throttle),
    ],
    run: (values) => doing(project, `Changed: ${budget.id}`, () => set(project, budget.id, budget.currency, values)),
  };
}

// Whether one gives what the other gets: an amount counts in each period.
function mayMove(from, to) {
  const isAlike = from.currency === to.currency && from.period === to.period;
  return from.id !== to.id && isAlike && (!from.period || from.zone === to.zone);
}

// Null if there is no other budget to move to.
export function moving(project, budget, others) {
  const targets = others.filter((other) => mayMove(budget, other));
  if (!targets.length) return null;
  const run = (values) => doing(project, `Moved from ${budget.id} to ${values.target}`, () =>
    command(path(project, "move-budget"), { source: budget.id, ...values }));
  return {
    title: `Move from: ${nameOf(budget)}`,
    action: "Move",
    text: `${amount(budget.currency, budget.remaining)} is neither spent nor reserved, and can be moved.`,
    fields: [
      {
        name: "target", label: "To", kind: "choice", value: targets[0].id,
        options: targets.map((other) => [other.id, `${other.scope}: ${nameOf(other)}`]),
      },
      asked(budget, "amount", "Amount", { value: "" }),
    ],
    run,
  };
}

export function removing(project, budget) {
  return {
    title: `Remove: ${nameOf(budget)}`,
    action: "Remove",
    danger: true,
    text: "Its tasks then have no limit from this budget. Tasks that it paused continue.",
    run: () => doing(project, `Removed: ${budget.id}`, () => command(path(project, "budgets", budget.id, "remove"))),
  };
}
