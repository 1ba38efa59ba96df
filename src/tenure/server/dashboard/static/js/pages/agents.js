// The agents: status, tasks, memory and CPU; shells of people apart.
import { command, path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useOperator } from "../me.js";
import { Ask } from "../parts/dialogs.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { Sparkline } from "../parts/sparkline.js";
import { Progress } from "../parts/states.js";
import { done } from "../parts/toasts.js";
import { TaskLink, address } from "../router.js";
import { Time, now } from "../time.js";
import { NOTHING, counted, number, period } from "../format.js";

const TONES = { active: "work", idle: "ready", draining: "odd", stale: "bad", offline: "rest" };
const ORDER = Object.keys(TONES);
const MOST_HELD = 5; // shown of one agent
const WELL = ["ok", "healthy"];
const isPerson = (agent) => agent.type === "human";

export function AgentStatus({ agent }) {
  return html`<span class="dot-label"><i class=${`dot ${TONES[agent.status] ?? "rest"}`}></i>${agent.status}</span>`;
}

export function Agents({ project }) {
  const agents = useQuery(path(project, "agents"), {}, { pause: 1000 });
  const flow = useQuery(path(project, "overview"), { minutes: 60 }, { pause: 5000 });
  const held = useQuery(path(project, "tasks"), { state: ["claimed", "running"], limit: 500 }, { pause: 1000 });
  const [asked, ask] = useState(null);
  const did = Object.fromEntries((flow.data?.agents ?? []).map((one) => [one.agent, one]));
  const tasks = Object.fromEntries((held.data?.items ?? []).map((task) => [task.key, task]));
  return html`
    <header class="page-head"><h1>Agents</h1><${Working} agents=${agents.data?.items} /></header>
    <${Loaded} of=${agents} what="Loading the agents">${({ items }) => items.length
      ? [items.filter((one) => !isPerson(one)), items.filter(isPerson)].map((some, place) => some.length > 0 && html`
          ${place === 1 && html`<h2 class="section-head below-panel">Shells of people</h2>`}
          <ul class="cards agents">${sorted(some).map((agent) => html`<${Card} key=${agent.name}
            project=${project} agent=${agent} flow=${flow.data} did=${did[agent.name]} tasks=${tasks} ask=${ask} />`)}</ul>`)
      : html`<${NoAgents} />`}<//>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}

function Working({ agents }) {
  if (!agents) return null;
  const bots = agents.filter((agent) => !isPerson(agent));
  const working = bots.filter((agent) => agent.tasks.length).length;
  return html`<p class="quiet">${counted(working, "works", "work")} of ${number(bots.length)}</p>`;
}

function NoAgents() {
  return html`<${Empty} title="No agents yet">
    <p>An agent appears with its first claim, or with <code>tenure join</code>.</p>
    <p><code>tenure run -n 3 --agent claude</code> starts three.</p>
  <//>`;
}

function sorted(agents) {
  const place = (agent) => ORDER.indexOf(agent.status);
  return [...agents].sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name));
}

function Card({ project, agent, flow, did, tasks, ask }) {
  const isCooling = agent.cool_until && Date.parse(agent.cool_until) > now();
  return html`<li class=${`card agent ${agent.status}`}>
    <div class="card-head">
      <div><span class="card-title text">${agent.name}</span> \
<span class="faint text">${agent.type}${agent.managed ? ", managed" : ""}</span></div>
      <${AgentStatus} agent=${agent} />
    </div>
    ${agent.terminated_at && html`<p class="problem">Terminated <${Time} at=${agent.terminated_at} />\
${agent.terminated_for && html`: <span class="text">${agent.terminated_for}</span>`}</p>`}
    ${agent.health && !WELL.includes(agent.health) && html`<p class="problem">Reported health: ${agent.health}</p>`}
    ${agent.tasks.length > 0 && html`<${Holding} project=${project} agent=${agent} tasks=${tasks} />`}
    <${Facts} of=${[
      ["Last seen", html`<${Time} at=${agent.last_seen} />`],
      agent.next_heartbeat_at && ["Next heartbeat", html`<${Heartbeat} at=${agent.next_heartbeat_at} />`],
      agent.task && agent.expected_at && ["Expects to be done", html`<${Time} at=${agent.expected_at} />`],
      [`Busy in the last ${!flow || flow.is_whole ? "hour" : period(flow)}`, did ? html`<${Progress} percent=${Math.round(100 * did.busy)} />` : NOTHING],
      ["Completed · failed · lost", did ? `${did.completed} · ${did.failed} · ${did.lost}` : "0 · 0 · 0"],
      ["Models", agent.models?.join(", ")],
      ["Capabilities", agent.capabilities?.join(", ")],
      ["Tracks", agent.tracks?.join(", ")],
      ["Region", agent.region],
      ["Runs on", agent.host && [agent.host, agent.pid && `process ${agent.pid}`].filter(Boolean).join(", ")],
      isCooling && ["Cooling off until", html`<${Time} at=${agent.cool_until} />`],
    ]} />
    ${agent.memory_mb !== null && agent.status !== "offline" && html`<${LastHour} project=${project} agent=${agent} />`}
    <${Verbs} project=${project} agent=${agent} ask=${ask} />
  </li>`;
}

function Heartbeat({ at }) {
  return Date.parse(at) < now() ? html`<span class="problem">overdue</span>` : html`<${Time} at=${at} />`;
}

const memory = (megabytes) => (megabytes < 10_000 ? `${number(megabytes)} MB` : `${(megabytes / 1024).toFixed(1)} GB`);

function LastHour({ project, agent }) {
  const { data } = useQuery(path(project, "agents", agent.name), {}, { pause: 30_000 });
  const minutes = data?.minutes ?? [];
  return html`<div class="last-hour">
    <${Sparkline} label="Memory in the last hour" minutes=${minutes} field="memory_mb" />
    <span class="figures">${memory(agent.memory_mb)}</span>
    ${agent.cpu_percent !== null && html`
      <${Sparkline} label="CPU in the last hour" minutes=${minutes} field="cpu_percent" />
      <span class="figures">${agent.cpu_percent} % CPU</span>`}
  </div>`;
}

function Holding({ project, agent, tasks }) {
  const more = agent.tasks.length - MOST_HELD;
  return html`<ul class="holding">
    ${agent.tasks.slice(0, MOST_HELD).map((key) => html`<li key=${key}>
      <${TaskLink} project=${project} task=${key} class="mono clip" />
      <${Progress} ...${key === agent.task ? agent : tasks[key] ?? {}} />
    </li>`)}
    ${more > 0 && html`<li><a href=${address(project, "tasks", null, { agent: agent.name })}>and ${more} more</a></li>`}
  </ul>`;
}

function Verbs({ project, agent, ask }) {
  const mine = (...parts) => path(project, "agents", agent.name, ...parts);
  const send = (verb, message) => () => done(project, message, () => command(mine(verb)));
  const end = () => ask(ending(project, agent, mine("terminate")));
  const isStopped = agent.draining || agent.terminated_at;
  const isThere = agent.status !== "offline";
  if (!useOperator() || !(isThere || isStopped)) return null;
  return html`<div class="card-actions">
    ${isThere && html`<a class="button small" href=${address(project, "messages", null, { to: agent.name })}>Message</a>`}
    ${isStopped
      ? html`<button class="button small" onClick=${send("resume", `Resumed: ${agent.name}`)}>Resume</button>`
      : html`<button class="button small" onClick=${send("drain", `Draining: ${agent.name}`)}>Drain</button>`}
    ${isThere && html`<button class="button small danger-text" onClick=${end}>Terminate</button>`}
  </div>`;
}

function ending(project, agent, where) {
  return {
    title: `Terminate ${agent.name}`,
    danger: true,
    action: "Terminate",
    text: `It cannot claim until it is resumed, and its workers exit. Its claims (${counted(agent.tasks.length, "task")}) \
may finish, unless you end them now: then later submits are refused.`,
    fields: [
      { name: "reason", label: "Reason", kind: "text", hint: "The agent sees it." },
      { name: "now", label: "End its claims now", kind: "check", value: false },
    ],
    run: ({ reason, now: isNow }) =>
      done(project, `Terminated: ${agent.name}`, () => command(where, { reason, graceful: !isNow })),
  };
}
