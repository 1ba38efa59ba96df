// The members of the tenant: invite, change, remove. Which roles one may give, the server says.
import { command } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { Ask } from "../parts/dialogs.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { done } from "../parts/toasts.js";
import { Done } from "../time.js";

const TONES = { active: "good", invited: "odd", left: "" };
const SHOWN = [["now", "Now"], ["all", "Former too"]];

export function Members({ known }) {
  const [which, show] = useState("now");
  const members = useQuery("/members", which === "all" ? { left: true } : {}, { pause: 5000 });
  const projects = useQuery("/projects", {}, { pause: 60_000 }).data?.items ?? [];
  const [asked, ask] = useState(null);
  const grants = known?.grants ?? [];
  return html`
    <header class="page-head">
      <h1>Members</h1>
      ${known && html`<span class="quiet">of the tenant <span class="text">${known.tenant}</span></span>`}
      ${grants.length > 0 && html`<button class="button" onClick=${() => ask(inviting(grants, projects))}>Invite</button>`}
      <${Tabs} label="Members" value=${which} options=${SHOWN} onChange=${show} />
    </header>
    <${Loaded} of=${members} what="Loading the members">${({ items }) => items.length
      ? html`<div class="scroll panel flush" tabindex="0" role="region" aria-label="Members"><table class="table flow-table">
          <thead><tr>${["Member", "Status", "Role", "Projects", "Invited", "Actions"].map((name) => html`<th key=${name}>${name}</th>`)}</tr></thead>
          <tbody>${items.map((one) => html`<${Row} key=${one.user} member=${one} grants=${grants} projects=${projects} ask=${ask} />`)}</tbody>
        </table></div>`
      : html`<${Empty} title="No members yet">
          <p>A key works here with or without a membership. A member is a person: no key of theirs reaches further than
            their role, and all of them end with the membership.</p>
        <//>`}<//>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function Row({ member, grants, projects, ask }) {
  const canChange = grants.includes(member.role) && member.status !== "left";
  return html`<tr data-user=${member.user}>
    <td class="text strong title-cell">${member.user}</td>
    <td class="fit"><span class="dot-label"><i class=${`dot ${TONES[member.status]}`}></i>${member.status}</span></td>
    <td class="fit">${member.role}</td>
    <td class="text">${member.projects.length ? member.projects.join(", ") : html`<span class="faint">all</span>`}</td>
    <td class="fit faint"><${Done} at=${member.invited_at} by=${member.invited_by} /></td>
    <td class="fit">${canChange && html`
      <button class="button small" aria-label=${`Change ${member.user}`} onClick=${() => ask(changing(member, grants, projects))}>Change</button>${" "}
      <button class="button small danger-text" aria-label=${`Remove ${member.user}`} onClick=${() => ask(removing(member))}>Remove</button>`}</td>
  </tr>`;
}

// Nothing on members can be undone. An outcome may say how many keys were revoked.
const doing = (words, where, fields) => done(null, words, () => command(where, fields), { canUndo: false, throws: true });
const at = (member, ...verb) => ["/members", encodeURIComponent(member.user), ...verb].join("/");

const access = (grants, projects, role, chosen) => [
  { name: "role", label: "Role", kind: "choice", value: role, options: grants.map((one) => [one, one]) },
  {
    name: "projects", label: "Projects", kind: "list", value: chosen.join(" "), options: projects,
    hint: "Names, separated by spaces. Empty: all projects.",
  },
];

function inviting(grants, projects) {
  return {
    title: "Invite a member",
    action: "Invite",
    text: "They sign in with your identity provider, or with a key that names them.",
    fields: [
      { name: "user", label: "Person", required: true, hint: "As in the sub of their tokens and the user of their keys." },
      ...access(grants, projects, "member", []),
    ],
    run: ({ user, ...fields }) => doing(`Invited: ${user.trim()}`, "/members", { user: user.trim(), ...fields }),
  };
}

function changing(member, grants, projects) {
  return {
    title: `Change: ${member.user}`,
    action: "Save",
    text: "Keys of theirs that reach further are revoked.",
    fields: access(grants, projects, member.role, member.projects),
    run: (fields) => doing(`Changed: ${member.user}`, at(member), fields),
  };
}

function removing(member) {
  return {
    title: `Remove: ${member.user}`,
    action: "Remove",
    danger: true,
    text: "Their membership ends, and their keys are revoked.",
    run: () => doing(`Removed: ${member.user}`, at(member, "remove")),
  };
}
