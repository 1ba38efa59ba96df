// The limits of the project: the value of each, where it comes from, and how much of it is used.
import { command, path } from "../api.js";
import { html, useState } from "../html.js";
import { useAdmin } from "../me.js";
import { useQuery } from "../query.js";
import { Ask } from "../parts/dialogs.js";
import { Loaded } from "../parts/notices.js";
import { done } from "../parts/toasts.js";
import { lasting, number } from "../format.js";

const SOURCES = { default: "default", tenant: "tenant", project: "this project" };
const NEAR = 0.9;

export function Limits({ project }) {
  const limits = useQuery(path(project, "limits"), {}, { pause: 5000 });
  const [asked, ask] = useState(null);
  const isAdmin = useAdmin();
  return html`
    <header class="page-head">
      <h1>Limits</h1>
      ${isAdmin && limits.data && html`<button class="button" onClick=${() => ask(changing(project, limits.data.items))}>Change</button>`}
    </header>
    <${Loaded} of=${limits} what="Loading the limits">${({ items }) => html`
      <div class="scroll panel flush" tabindex="0" role="region" aria-label="Limits"><table class="table flow-table limits">
        <thead><tr><th>Limit</th><th class="right">Value</th><th>From</th><th class="right">Used</th><th><span class="hidden">Share</span></th></tr></thead>
        <tbody>${items.map((one) => html`<${Row} key=${one.name} limit=${one} />`)}</tbody>
      </table></div>
      <p class="note">A project may lower the limits of its tenant, and never raises them.</p>`}<//>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

const SECONDS = { seconds: 1, days: 86_400 };

function amount(value, unit) {
  return unit in SECONDS ? lasting(value * SECONDS[unit]) : number(value);
}

function Row({ limit }) {
  const [meaning, unit] = limit.meaning.split(", in ");
  return html`<tr data-name=${limit.name}>
    <td class="title-cell"><span class="mono">${limit.name}</span><br /><span class="faint">${meaning}</span></td>
    <td class="figures" title=${unit && limit.value !== null && `${number(limit.value)} ${unit}`}>
      ${limit.value === null ? html`<span class="faint">none</span>` : amount(limit.value, unit)}</td>
    <td class="fit quiet">${SOURCES[limit.source] ?? limit.source}</td>
    <td class="figures">${limit.used !== null && html`${number(limit.used)}<span class="only-narrow"> used</span>${limit.source === "tenant" && html`
      <span class="faint"> in all projects</span>`}`}</td>
    <td class="use-cell"><${Use} limit=${limit} /></td>
  </tr>`;
}

function Use({ limit: { used, value } }) {
  if (used === null || !value) return null;
  const share = Math.min(1, used / value);
  const label = `${number(used)} of ${number(value)} used`;
  return html`<span class="meter" role="img" aria-label=${label} title=${label}>
    <span class=${`fill ${share >= NEAR ? "bad" : ""}`} style=${{ width: `${share * 100}%` }}></span>
  </span>`;
}

function changing(project, items) {
  const isOwn = ({ source }) => source === "project";
  return {
    title: `Limits: ${project}`,
    action: "Save",
    wide: true,
    text: "An empty field means the value of the tenant, or the default.",
    fields: items.map((one) => ({
      name: one.name, label: one.name, kind: "whole", min: 0, hint: one.meaning,
      value: isOwn(one) ? String(one.value) : "", placeholder: isOwn(one) || one.value === null ? "" : number(one.value),
    })),
    run: (fields) => done(null, "Limits changed", () => command(path(project), { change_limits: fields }, "PUT"),
      { canUndo: false, throws: true }),
  };
}
