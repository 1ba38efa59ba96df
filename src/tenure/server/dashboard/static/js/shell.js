// The frame of every page: navigation, project, connection, user.
import { Bell } from "./bell.js";
import { html, useEffect, useState } from "./html.js";
import { bound, helping } from "./shortcuts.js";
import { connection } from "./live.js";
import { me, signsIn } from "./me.js";
import { useQuery } from "./query.js";
import { Person } from "./person.js";
import { Dialog } from "./parts/dialogs.js";
import { Icon, Logo } from "./parts/icons.js";
import { address, go } from "./router.js";
import { Search } from "./search.js";
import { useSignal } from "./signal.js";
import { HOME, open as openTenant } from "./tenant.js";
import { chooseNext, theme } from "./theme.js";
import { briefNumber } from "./format.js";

// A page, its title, and the letter after `g`.
export const PAGES = [
  ["", "Overview", "o"],
  ["todo", "For a person", "y"],
  ["tasks", "Tasks", "t"],
  ["dags", "Dags", "d"],
  ["forecast", "Forecast", "f"],
  ["agents", "Agents", "a"],
  ["pools", "Pools", "p"],
  ["dead-letters", "Dead letters", "l"],
  ["messages", "Messages", "m"],
  ["events", "Events", "e"],
  ["budgets", "Budgets", "b"],
  ["usage", "Usage", "u"],
  ["schedules", "Schedules", "s"],
  ["delivery", "Delivery", "w"],
  ["coordinator", "Coordinator", "c"],
  ["limits", "Limits", "i"],
];

// Pages of the tenant, and who is shown them; the server decides.
const OF_TENANT = [
  ["", "Projects", () => true],
  ["members", "Members", (known) => known?.grants.length > 0],
  ["tenants", "Tenants", (known) => known?.manages_tenants],
];

// `project` null: the frame of a page of the tenant.
export function Shell({ project, page, status, children }) {
  const [isOpen, open] = useState(false);
  useEffect(() => open(false), [page, project]);
  return html`
    <a class="skip" href="#main">Skip to content</a>
    <header class="top">
      <button class="button ghost only-narrow" aria-label="Menu" aria-expanded=${isOpen} aria-controls="nav"
        onClick=${() => open(!isOpen)}><${Icon} name="menu" /></button>
      <a class="brand" href=${address(project)}><${Logo} />tenure</a>
      <${TenantSwitcher} />
      ${project ? html`<${Switcher} project=${project} page=${page} /><${Search} project=${project} />
        <${Live} /><${Bell} key=${project} project=${project} />` : html`<span class="spacer"></span>`}
      <${Person} />
      <${ThemeButton} />
      <button class="button ghost only-wide" aria-label="Shortcuts" title="Keyboard shortcuts (?)"
        onClick=${() => helping.set(true)}>
        <${Icon} name="help" />
      </button>
    </header>
    <nav id="nav" class=${isOpen ? "side-nav open" : "side-nav"} aria-label="Pages">
      <${TenantSwitcher} />
      <ul>
        ${project && PAGES.map(([name, label, letter]) => html`<li key=${name}>
          <a href=${address(project, name)} aria-current=${name === page ? "page" : undefined} title=${`g ${letter}`}>
            <${Icon} name=${name || "overview"} /><span>${label}</span><${Badge} page=${name} status=${status.data} />
          </a>
        </li>`)}
        <${TenantPages} current=${project ? null : page} />
      </ul>
    </nav>
    ${isOpen && html`<div class="shade" onClick=${() => open(false)}></div>`}
    <main id="main" class="page" tabindex="-1"><${Offline} />${children}</main>
    <${Help} />`;
}

function Badge({ page, status }) {
  if (!status) return null;
  const dead = status.tasks.dead_lettered ?? 0;
  const working = status.agents.filter((agent) => agent.tasks.length).length;
  const reviews = status.validations?.review?.waiting ?? 0;
  const low = (status.budgets ?? []).filter((budget) => budget.alerts.some((alert) => alert.level >= 90)).length;
  if (page === "dead-letters" && dead) return html`<span class="badge bad">${briefNumber(dead)}</span>`;
  if (page === "budgets" && low) return html`<span class="badge bad" title="budgets at 90 % or more">${low}</span>`;
  if (page === "tasks" && reviews) return html`<span class="badge odd" title="waiting for review">${reviews}</span>`;
  return page === "agents" && working ? html`<span class="badge">${working}</span>` : null;
}

function TenantPages({ current }) {
  const known = useSignal(me);
  // Beside a project, its switcher lists the others.
  const shown = OF_TENANT.filter(([name, , isFor]) => isFor(known) && (name || current !== null));
  return shown.map(([name, label], index) => html`<li key=${`tenant ${name}`} class=${index || current !== null ? "" : "first"}>
    <a href=${address(null, name)} aria-current=${name === current ? "page" : undefined}>
      <${Icon} name=${name || "projects"} /><span>${label}</span>
    </a>
  </li>`);
}

const ANOTHER = " "; // no tenant has this name

// The tenants that this browser is signed in to; nothing where there is only the home tenant. On a phone it is in the
// navigation.
function TenantSwitcher() {
  const known = useSignal(me);
  if (!known || (known.tenants.length < 2 && known.tenant === HOME)) return null;
  const choose = (event) => {
    const wanted = event.target.value;
    event.target.value = known.tenant;
    if (wanted === ANOTHER) signsIn.set(true);
    else openTenant(wanted);
  };
  const option = (name) => html`<option key=${name} value=${name} selected=${name === known.tenant}>${name}</option>`;
  return html`<label class="switcher tenant">
    <span class="hidden">Tenant</span>
    <select value=${known.tenant} title="Tenant" onChange=${choose}>
      ${known.tenants.map(option)}
      ${known.key && html`<option value=${ANOTHER}>Sign in to another…</option>`}
    </select>
  </label>`;
}

function Switcher({ project, page }) {
  const { data } = useQuery("/projects", {}, { pause: 60_000 });
  const names = [...new Set([project, ...(data?.items ?? [])])].sort();
  const stays = PAGES.some(([name]) => name === page) ? page : "";
  const option = (name) => html`<option key=${name} value=${name} selected=${name === project}>${name}</option>`;
  return html`<label class="switcher">
    <span class="hidden">Project</span>
    <select value=${project} onChange=${(event) => go(address(event.target.value, stays))}>${names.map(option)}</select>
  </label>`;
}

const CONNECTION = {
  live: ["Live", "Changes are shown immediately"],
  starting: ["Connecting", "Connecting to the server"],
  offline: ["Offline", "Cannot reach the server"],
};

function Live() {
  const state = useSignal(connection);
  const [word, title] = CONNECTION[state];
  return html`<span class=${`live ${state}`} role="status" title=${title}>
    <i class="dot"></i><span class="live-word">${word}</span>
  </span>`;
}

function Offline() {
  if (useSignal(connection) !== "offline") return null;
  return html`<div class="banner odd" role="alert">
    The connection to the server is lost. The page may be outdated; it reconnects automatically.
  </div>`;
}

function ThemeButton() {
  const name = useSignal(theme);
  const label = `Theme: ${name}`;
  return html`<button class="button ghost" aria-label=${label} title=${label} onClick=${chooseNext}>
    <${Icon} name=${name} />
  </button>`;
}

function Help() {
  if (!useSignal(helping)) return null;
  const close = () => helping.set(false);
  const keys = [...bound(), ["Esc", "close a dialog, or leave a field"]];
  return html`<${Dialog} title="Keyboard shortcuts" close=${close}>
    <dl class="keys">${keys.map(([key, says]) => html`<div key=${key}>
      <dt>${key.split(" ").map((part) => html`<kbd>${part}</kbd> `)}</dt><dd>${says}</dd>
    </div>`)}</dl>
    <div class="dialog-buttons"><button class="button primary" autofocus onClick=${close}>Close</button></div>
  <//>`;
}
