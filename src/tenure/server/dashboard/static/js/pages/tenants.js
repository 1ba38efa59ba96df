// The tenants of the deployment, for its owner: add, change limits, close, reopen.
import { command } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { Ask } from "../parts/dialogs.js";
import { Tabs } from "../parts/filters.js";
import { Loaded } from "../parts/notices.js";
import { done } from "../parts/toasts.js";
import { addressOf } from "../tenant.js";
import { Done, Time } from "../time.js";
import { number } from "../format.js";

const SHOWN = [["open", "Open"], ["all", "Closed too"]];
const COLUMNS = ["Tenant", "Status", "Tier", "Changed limits", "Where", "Created", "Actions"];
const TIERS = [["default", "default"], ["enterprise", "enterprise"]];

export function Tenants({ known }) {
  const [which, show] = useState("open");
  const tenants = useQuery("/tenants", which === "all" ? { closed: true } : {}, { pause: 5000 });
  const [asked, ask] = useState(null);
  const isOwner = known?.manages_tenants;
  return html`
    <header class="page-head">
      <h1>Tenants</h1>
      ${isOwner && html`<button class="button" onClick=${() => ask(adding())}>New tenant</button>`}
      <${Tabs} label="Tenants" value=${which} options=${SHOWN} onChange=${show} />
    </header>
    <${Loaded} of=${tenants} what="Loading the tenants">${({ items }) => html`
      <div class="scroll panel flush" tabindex="0" role="region" aria-label="Tenants"><table class="table flow-table">
        <thead><tr>${COLUMNS.map((name) => html`<th key=${name}>${name}</th>`)}</tr></thead>
        <tbody>${items.map((one) => html`<${Row} key=${one.name} tenant=${one} isHere=${one.name === known?.tenant}
          canOpen=${known?.tenants.includes(one.name)} ask=${isOwner ? ask : null} />`)}</tbody>
      </table></div>
      ${items.length === 1 && html`<p class="note">The tenant ${items[0].name} is the home of the deployment. Others are
        teams that see nothing of one another; PostgreSQL, MariaDB and Valkey keep several.</p>`}`}<//>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function Row({ tenant, isHere, canOpen, ask }) {
  const isOpen = tenant.status === "open";
  return html`<tr data-name=${tenant.name}>
    <td class="fit strong title-cell">${isOpen && canOpen && !isHere
      ? html`<a href=${addressOf(tenant.name)}>${tenant.name}</a>` : tenant.name}</td>
    <td class="fit"><span class="dot-label"><i class=${`dot ${isOpen ? "good" : ""}`}></i>${tenant.status}</span></td>
    <td class="fit">${tenant.tier ?? html`<span class="faint" title="the home of the deployment has no limits">none</span>`}</td>
    <td class="text">${tenant.changed_limits.map((name) => spelt(tenant, name)).join(", ")}</td>
    <td class="fit">${where(tenant)}</td>
    <td class="fit faint"><${Done} at=${tenant.created_at} by=${tenant.created_by} />
      ${tenant.closed_at && html`<br />closed <${Time} at=${tenant.closed_at} />${tenant.closed_for && html`:
        <span class="text">${tenant.closed_for}</span>`}`}</td>
    <td class="fit">${ask && tenant.tier && html`<${Verbs} tenant=${tenant} isOpen=${isOpen} ask=${ask} />`}</td>
  </tr>`;
}

const OWN = { schema: "own schema", instance: "own store" };
const where = ({ isolation, region }) => [OWN[isolation], region].filter(Boolean).join(", ");

const UNITS = {
  max_lease: "seconds", min_lease: "seconds", history_retention: "days", max_result_size: "bytes",
  api_rate: "requests a second",
};
const spelt = (tenant, name) => [name, number(tenant.limits[name]), UNITS[name]].filter(Boolean).join(" ");

function Verbs({ tenant, isOpen, ask }) {
  const button = (word, run, tone = "") => html`<button class=${`button small ${tone}`}
    aria-label=${`${word}: ${tenant.name}`} onClick=${run}>${word}</button>`;
  if (!isOpen) return button("Reopen", () => doing(`Reopened: ${tenant.name}`, at(tenant, "reopen"), {}, false));
  return html`
    ${button("Limits", () => ask(limiting(tenant)))}${" "}
    ${button("Close", () => ask(closing(tenant)), "danger-text")}`;
}

// Nothing on tenants can be undone.
const doing = (words, where, fields = {}, throws = true) =>
  done(null, words, () => command(where, fields), { canUndo: false, throws });
const at = (tenant, ...verb) => ["/tenants", tenant.name, ...verb].join("/");

const isInstance = ({ isolation }) => isolation === "instance";

function adding() {
  return {
    title: "New tenant",
    action: "Create",
    text: "Its projects, keys and members are visible to itself alone.",
    fields: [
      { name: "tenant", label: "Name", required: true, hint: "a-z, 0-9 and hyphens, as in acme." },
      { name: "tier", label: "Tier of its limits", kind: "choice", value: "default", options: TIERS },
      {
        name: "isolation", label: "Isolation", kind: "choice", value: "logical",
        options: [["logical", "logical: in the tables of all"], ["instance", "instance: in its own store"]],
      },
      {
        name: "store", label: "URL of its store", kind: "password", required: true, when: isInstance,
        hint: "It is sealed, and shown nowhere.",
      },
      { name: "region", label: "Region (optional)", isMore: true },
    ],
    run: ({ tenant, region, ...fields }) =>
      doing(`Created: ${tenant.trim()}`, "/tenants", { tenant: tenant.trim(), region: region.trim() || null, ...fields }),
  };
}

function limiting(tenant) {
  const names = Object.keys(tenant.limits);
  const isChanged = (name) => tenant.changed_limits.includes(name);
  return {
    title: `Limits: ${tenant.name}`,
    action: "Save",
    wide: true,
    text: "They count over all projects of the tenant; an empty field means the value of the tier. Servers apply a change within two seconds.",
    fields: [
      { name: "tier", label: "Tier", kind: "choice", value: tenant.tier, options: TIERS },
      ...names.map((name) => ({
        name, label: name, kind: "whole", min: 0, hint: UNITS[name], value: isChanged(name) ? String(tenant.limits[name]) : "",
        placeholder: isChanged(name) ? "" : number(tenant.limits[name]),
      })),
    ],
    run: ({ tier, ...limits }) => doing(`Changed: ${tenant.name}`, at(tenant), { tier, limits }),
  };
}

function closing(tenant) {
  return {
    title: `Close: ${tenant.name}`,
    action: "Close it",
    danger: true,
    text: "Nobody can use it until you reopen it, and it looks unknown. Its rows stay.",
    fields: [{ name: "reason", label: "Reason (optional)" }],
    run: (fields) => doing(`Closed: ${tenant.name}`, at(tenant, "close"), fields),
  };
}
