// The entry point: shows the page of the address.
import { path, signedOut } from "./api.js";
import { html, render, useEffect, useErrorBoundary, useLayoutEffect } from "./html.js";
import { bind, helping } from "./shortcuts.js";
import { follow } from "./live.js";
import { useQuery } from "./query.js";
import { learnMe, me, signsIn } from "./me.js";
import { Agents } from "./pages/agents.js";
import { Budgets } from "./pages/budgets.js";
import { Coordinator } from "./pages/coordinator.js";
import { Dag } from "./pages/dag.js";
import { Dags } from "./pages/dags.js";
import { DeadLetters } from "./pages/dead-letters.js";
import { Delivery } from "./pages/delivery.js";
import { Events } from "./pages/events.js";
import { Forecast } from "./pages/forecast.js";
import { Limits } from "./pages/limits.js";
import { Login } from "./pages/login.js";
import { Members } from "./pages/members.js";
import { Messages } from "./pages/messages.js";
import { Overview } from "./pages/overview.js";
import { Pools } from "./pages/pools.js";
import { Projects } from "./pages/projects.js";
import { Schedules } from "./pages/schedules.js";
import { Task } from "./pages/task.js";
import { Tasks } from "./pages/tasks.js";
import { Tenants } from "./pages/tenants.js";
import { Todo } from "./pages/todo.js";
import { Usage } from "./pages/usage.js";
import { Webhook } from "./pages/webhook.js";
import { Failure, Notice } from "./parts/notices.js";
import { Toasts } from "./parts/toasts.js";
import { address, go, route, useRoute } from "./router.js";
import { PAGES, Shell } from "./shell.js";
import { useSignal } from "./signal.js";
import { isUnknown, named } from "./tenant.js";
import { chooseNext } from "./theme.js";

const VIEWS = {
  "": Overview, todo: Todo, tasks: Tasks, dags: Dags, forecast: Forecast, agents: Agents, pools: Pools,
  "dead-letters": DeadLetters, messages: Messages, events: Events, budgets: Budgets, usage: Usage,
  schedules: Schedules, delivery: Delivery,
  coordinator: Coordinator, limits: Limits,
};
const ONE = { tasks: Task, dags: Dag, delivery: Webhook }; // pages with an id

const OF_TENANT = { "": Projects, members: Members, tenants: Tenants };

function App() {
  const { project } = useRoute();
  const isOut = useSignal(signedOut);
  const isAnother = useSignal(signsIn);
  const isNowhere = useSignal(isUnknown);
  useEffect(() => {
    if (!isOut && project) follow(project);
  }, [project, isOut]);
  if (isAnother) return html`<${Login} cancel=${() => signsIn.set(false)} />`;
  if (isOut) return html`<${Login} />`;
  if (isNowhere) return html`<${NoTenant} />`;
  return html`
    ${project ? html`<${InProject} key=${project} project=${project} />` : html`<${InTenant} />`}
    <${Toasts} />`;
}

// The same for a tenant that does not exist and for one of others: the server does not say which.
function NoTenant() {
  return html`<main id="main" class="page narrow" tabindex="-1">
    <h1>Tenant not found</h1>
    <p>There is no tenant <strong class="text">${named}</strong> here, or you are not signed in to it.</p>
    <p class="card-actions">
      <button class="button primary" onClick=${() => signedOut.set(true)}>Sign in with another key</button>
      <a class="button" href="/">Go to your own</a>
    </p>
  </main>`;
}

function InTenant() {
  const { page } = useRoute();
  const known = useSignal(me);
  useEffect(() => {
    document.title = `${page ? page[0].toUpperCase() + page.slice(1) : "Projects"} · tenure`;
  }, [page]);
  const View = OF_TENANT[page];
  return html`<${Shell} project=${null} page=${page}>
    ${View ? html`<${View} key=${page} known=${known} />` : html`<${Nowhere} />`}
  <//>`;
}

function InProject({ project }) {
  const { page, id } = useRoute();
  // Beside tasks it has only the numbers of the menu.
  const status = useQuery(path(project), {}, { pause: page === "tasks" ? 5000 : 2000 });
  useEffect(() => {
    const title = PAGES.find(([name]) => name === page)?.[1] ?? "";
    document.title = `${id ?? title} · ${project} · tenure`;
  }, [project, page, id]);
  useLayoutEffect(() => bind({
    "/": { run: () => document.getElementById("search").focus(), says: "find a task" },
    "?": { run: () => helping.set(true), says: "show these shortcuts" },
    T: { run: chooseNext, says: "switch the theme: auto, light, dark" },
    ...Object.fromEntries(PAGES.map(([name, label, letter]) => [`g ${letter}`, { run: () => open(name), says: label }])),
  }), []);
  return html`<${Shell} project=${project} page=${page} status=${status}>
    ${status.error?.status === 404 && status.data === null
      ? html`<${Failure} error=${status.error} />`
      : html`<${Page} key=${`${page}/${id ?? ""}`} project=${project} page=${page} id=${id} status=${status} />`}
  <//>`;
}

const open = (page) => go(address(route.value.project, page));

// An error in a page must not break the frame.
function Page({ project, page, id, status }) {
  const [error, reset] = useErrorBoundary((caught) => console.error(caught));
  const View = id === null ? VIEWS[page] : ONE[page];
  if (error) {
    return html`<${Notice} sign="✗" tone="bad" title="This page has an error">
      <p>${String(error.message ?? error)}</p>
      <p><button class="button" onClick=${reset}>Try again</button></p>
    <//>`;
  }
  if (View) return html`<${View} project=${project} id=${id} status=${status} />`;
  return html`<${Nowhere} project=${project} />`;
}

function Nowhere({ project = null }) {
  return html`<${Notice} sign="∅" title="Page not found"><a href=${address(project)}>Go to the overview</a><//>`;
}

learnMe();
const root = document.getElementById("app");
root.textContent = "";
render(html`<${App} />`, root);
