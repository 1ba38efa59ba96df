// Pools: agents that the leading server starts, with their live processes.
import { command, path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useAdmin } from "../me.js";
import { Ask } from "../parts/dialogs.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { done } from "../parts/toasts.js";
import { TaskLink } from "../router.js";
import { Time } from "../time.js";
import { counted, number } from "../format.js";

const TONES = { ok: "good", "backing off": "odd", failing: "bad", paused: "" };
const STATES = { starting: "ready", running: "work", ended: "rest", lost: "bad" };
const SHOWN = 20; // ended processes

export function Pools({ project, status }) {
  const pools = useQuery(path(project, "pools"), {}, { pause: 1000 });
  const live = useQuery(path(project, "spawns"), { state: ["starting", "running"], limit: 500 }, { pause: 1000 });
  const over = useQuery(path(project, "spawns"), { state: ["ended", "lost"], limit: SHOWN }, { pause: 3000 });
  const [asked, ask] = useState(null);
  const isAdmin = useAdmin();
  const of = (pool) => (live.data?.items ?? []).filter((spawn) => spawn.pool === pool.name);
  return html`
    <header class="page-head"><h1>Pools</h1>
      ${isAdmin && html`<button class="button" onClick=${() => ask(setting(project))}>New pool</button>`}</header>
    <${NoLeader} now=${status.data} pools=${pools.data?.items} />
    <div class="stack wide-gap">
    <${Loaded} of=${pools} lines=${3} what="Loading the pools">${({ items }) => items.length
      ? html`<ul class="cards sources">${items.map((pool) => html`<${Card} key=${pool.name} project=${project}
          pool=${pool} spawns=${of(pool)} ask=${isAdmin ? ask : null} />`)}</ul>`
      : html`<${Empty} title="No pools yet">
          <p>A pool starts agents while tasks are ready:</p>
          <pre class="terminal" tabindex="0">tenure pool set coders --agent claude --size 3</pre>
        <//>`}<//>
    <${Over} project=${project} spawns=${over.data?.items ?? []} />
    </div>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function NoLeader({ now, pools }) {
  if (!now || now.coordinator || !(pools ?? []).some((pool) => pool.enabled)) return null;
  return html`<div class="banner odd" role="status">
    No agents are started now: start <code>tenure serve</code> or <code>tenure daemon</code>.
  </div>`;
}

function Card({ project, pool, spawns, ask }) {
  const only = [...pool.types, ...pool.tracks.map((code) => `track ${code}`)];
  return html`<li class=${`card source ${pool.enabled ? "" : "off"}`} data-name=${pool.name}>
    <div class="card-head">
      <span class="card-title text">${pool.name}</span>
      <span class="dot-label"><i class=${`dot ${TONES[pool.state] ?? ""}`}></i>${pool.state}</span>
    </div>
    <p class="quiet text">${pool.program} <span class="faint">by ${pool.spawner}</span></p>
    <${Facts} of=${[
      ["Running · starting · size", [pool.running, pool.starting, pool.size].map(number).join(" · ")],
      ["Started in all", number(pool.spawned)],
      only.length && ["Takes only", only.join(", ")],
      pool.capabilities.length && ["Capabilities", pool.capabilities.join(", ")],
      pool.models.length && ["Models", pool.models.join(", ")],
      !pool.enabled && ["Paused because", pool.disabled_for],
      pool.state === "backing off" && ["Next start", html`<${Time} at=${pool.wait_until} />`],
    ]} />
    ${pool.error && html`<p class="problem text">${pool.error} <span class="faint"><${Time} at=${pool.error_at} /></span></p>`}
    ${spawns.length > 0 && html`<ul class="holding processes" aria-label=${`Processes of ${pool.name}`}>
      ${spawns.map((spawn) => html`<${Process} key=${spawn.id} project=${project} spawn=${spawn} />`)}</ul>`}
    ${ask && html`<${Verbs} project=${project} pool=${pool} ask=${ask} />`}
  </li>`;
}

function Process({ project, spawn }) {
  const task = spawn.holds[0] ?? spawn.task;
  return html`<li data-spawn=${spawn.id}>
    <span>${spawn.agent}</span> <${TaskLink} project=${project} task=${task} class="mono clip" />
    <span class="dot-label"><i class=${`dot ${STATES[spawn.state]}`}></i>${spawn.state}
      <span class="faint"> <${Time} at=${spawn.running_at ?? spawn.started_at} /></span></span>
  </li>`;
}

// The last processes that are over, with their reasons.
function Over({ project, spawns }) {
  if (!spawns.length) return null;
  return html`<section aria-labelledby="over">
    <h2 id="over" class="section-head">Ended processes</h2>
    <div class="scroll panel flush" tabindex="0"><table class="table spawns">
      <thead><tr><th>Agent</th><th>Task</th><th>State</th><th>Ended</th><th>Because</th></tr></thead>
      <tbody>${spawns.map((spawn) => html`<tr key=${spawn.id}>
        <td class="text">${spawn.agent}</td>
        <td><${TaskLink} project=${project} task=${spawn.task} class="mono clip" /></td>
        <td><span class="dot-label"><i class=${`dot ${STATES[spawn.state]}`}></i>${spawn.state}</span></td>
        <td><${Time} at=${spawn.ended_at ?? spawn.offer_until} /></td>
        <td class="text quiet">${spawn.why}</td>
      </tr>`)}</tbody>
    </table></div>
  </section>`;
}

const doing = (message, run, throws = false) => done(null, message, run, { canUndo: false, throws });
const words = (text) => text.split(/[\s,]+/).filter(Boolean);

function Verbs({ project, pool, ask }) {
  const mine = (...parts) => path(project, "pools", pool.name, ...parts);
  const resume = () => doing(`Resumed: ${pool.name}`, () => command(mine("resume")));
  return html`<div class="card-actions">
    <button class="button small" onClick=${() => ask(setting(project, pool))}>Edit</button>
    ${pool.enabled && pool.state !== "backing off"
      ? html`<button class="button small" onClick=${() => ask(pausing(pool, mine))}>Pause</button>`
      : html`<button class="button small" onClick=${resume}>Resume</button>`}
    <button class="button small danger-text" onClick=${() => ask(removing(pool, mine))}>Remove</button>
  </div>`;
}

// Creates a pool, or changes the one that is given.
function setting(project, pool) {
  const run = ({ name = pool?.name, program, spawner, size, types, tracks, capabilities }) => doing(
    `${pool ? "Changed" : "Created"}: ${name.trim()}`,
    () => command(path(project, "pools", name.trim()), {
      program: program.trim(), spawner: spawner.trim(), size: Number(size), types: words(types), tracks: words(tracks),
      capabilities: words(capabilities),
    }, "PUT"),
    true,
  );
  return {
    title: pool ? `Edit: ${pool.name}` : "New pool",
    action: pool ? "Save" : "Create",
    text: "The leading server starts agents while tasks are ready, and never more than the size.",
    fields: [
      !pool && { name: "name", label: "Name", required: true, hint: "Its agents are named NAME-1, NAME-2 …" },
      {
        name: "program", label: "Agent or program", required: true, value: pool?.program,
        hint: "claude, codex …, or a name of [programs.NAME] in the server's settings.",
      },
      { name: "size", label: "Size", kind: "number", required: true, value: pool?.size ?? 1 },
      { name: "spawner", label: "Spawner", required: true, value: pool?.spawner ?? "local" },
      { name: "types", label: "Types of tasks (optional)", value: pool?.types.join(" "), hint: "Empty: all." },
      { name: "tracks", label: "Tracks (optional)", value: pool?.tracks.join(" ") },
      { name: "capabilities", label: "Capabilities (optional)", value: pool?.capabilities.join(" ") },
    ].filter(Boolean),
    run,
  };
}

function pausing(pool, mine) {
  return {
    title: `Pause ${pool.name}`,
    action: "Pause",
    text: `Nothing more is started; ${counted(pool.running, "running agent")} may finish.`,
    fields: [{ name: "reason", label: "Reason", kind: "text" }],
    run: ({ reason }) => doing(`Paused: ${pool.name}`, () => command(mine("pause"), { reason })),
  };
}

function removing(pool, mine) {
  return {
    title: `Remove ${pool.name}`,
    danger: true,
    action: "Remove",
    text: `Agents that hold a task (${number(pool.running)}) finish it; those that have not claimed yet end.`,
    fields: [],
    run: () => doing(`Removed: ${pool.name}`, () => command(mine("remove"))),
  };
}
