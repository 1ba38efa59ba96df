// The overview: throughput, waiting tasks, agents and cost.
import { path } from "../api.js";
import { html, useMemo } from "../html.js";
import { useQuery } from "../query.js";
import { Chart } from "../parts/chart.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Panel, Tile } from "../parts/panels.js";
import { Bar, State } from "../parts/states.js";
import { TaskLink, address, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { HELD, NOTHING, STATES, briefNumber, dollars, lasting, number, percent, period, shortKey } from "../format.js";
import { AgentStatus } from "./agents.js";
import { Money } from "./money.js";

const RANGES = [["60", "1 hour"], ["360", "6 hours"], ["1440", "1 day"], ["10080", "7 days"]];
const FLOW = [
  { name: "completed", tone: "good", kind: "bars" },
  { name: "failed or lost", tone: "bad", kind: "bars" },
];
const DEPTH = [
  { name: "held", tone: "work", kind: "area" },
  { name: "ready", tone: "ready", kind: "area" },
  { name: "waiting", tone: "rest", kind: "area" },
  { name: "paused", tone: "odd", kind: "area" },
  { name: "dead letters", tone: "bad", kind: "area" },
];
const GROUPS = ["held", "ready", "waiting", "paused", "dead"]; // the same, as the server names them
const MOST_AGENTS = 8;

export function Overview({ project, status }) {
  const { query } = useRoute();
  const minutes = RANGES.some(([range]) => range === query.get("minutes")) ? query.get("minutes") : "60";
  const flow = useQuery(path(project, "overview"), { minutes }, { pause: 10_000, isSpared: true }); // a step is a minute
  return html`
    <header class="page-head">
      <h1>Overview</h1>
      <${Tabs} label="Time shown" value=${minutes} options=${RANGES}
        onChange=${(value) => filter({ minutes: value === "60" ? "" : value })} />
    </header>
    <${Loaded} of=${status} lines=${3} what="Loading the overview">${(now) => html`
      <${Stopped} stopped=${now.stopped} />
      <${Shorter} flow=${flow.data} minutes=${minutes} />
      <${Tiles} project=${project} now=${now} flow=${flow.data} />
      ${Object.keys(now.tasks).length
        ? html`<${Work} project=${project} now=${now} flow=${flow} />`
        : html`<${Welcome} />`}
    `}<//>`;
}

function Stopped({ stopped }) {
  const lines = Object.entries(stopped ?? {});
  if (!lines.length) return null;
  const scopes = lines.map(([scope, why]) => `${scope.replace(/:$/, "").replace(":", " ")}${why ? `: ${why}` : ""}`);
  return html`<div class="banner odd" role="status">
    <strong>Stopped.</strong> ${`No tasks are claimed in ${scopes.join("; ")}.`}
  </div>`;
}

// The sums read the end of the log; where that does not reach back far enough, they are of a shorter time.
function Shorter({ flow, minutes }) {
  if (!flow || flow.is_whole) return null;
  return html`<div class="banner odd" role="status">
    <strong>${`The figures are of the last ${period(flow)}, not of ${new Map(RANGES).get(minutes)}.`}</strong> \
The log of that time is longer than this page reads.
  </div>`;
}

function Welcome() {
  return html`<${Empty} title="No tasks yet">
    <p>Add the first task, and let an agent claim it:</p>
    <pre class="terminal" tabindex="0">tenure add "Write the parser"${"\n"}tenure claim</pre>
  <//>`;
}

function Work({ project, now, flow }) {
  return html`
    <div class="columns two">
      <${Panel} title="Throughput">
        <${Loaded} of=${flow} lines=${4}>${(data) => html`<${Throughput} data=${data} />`}<//>
      <//>
      <${Panel} title="Depth"><${Loaded} of=${flow} lines=${4}>${(data) => html`<${Depth} data=${data} />`}<//><//>
    </div>
    <div class="columns two">
      <${Panel} title="Tracks"><${Tracks} project=${project} tracks=${now.tracks} /><//>
      <${Panel} title="Tasks by state"><${Standing} project=${project} tasks=${now.tasks} flow=${flow} /><//>
    </div>
    <${Money} project=${project} now=${now} />
    <${Team} project=${project} agents=${now.agents} flow=${flow.data} />`;
}

function Tiles({ project, now, flow }) {
  const { tasks, agents, usage, validations } = now;
  const list = (query) => address(project, "tasks", null, query);
  const held = HELD.reduce((sum, state) => sum + (tasks[state] ?? 0), 0);
  const oldest = flow?.oldest.find((one) => one.state === "ready");
  const dead = tasks.dead_lettered ?? 0;
  const reviews = validations?.review?.waiting ?? 0;
  const toLand = (validations?.land?.waiting ?? 0) + (validations?.land?.running ?? 0);
  const waits = [reviews && `${number(reviews)} waiting for review`, toLand && `${number(toLand)} to be landed`];
  return html`<div class="tiles">
    <${Tile} label="Completed" value=${flow ? number(completed(flow)) : "…"}
      href=${list({ state: "completed", order: "-completed_at" })}>${flow && rate(flow)}<//>
    <${Tile} label="In progress" value=${number(held)} href=${list([["state", "claimed"], ["state", "running"]])}>
      ${agents.filter((agent) => agent.tasks.length).length} of ${number(agents.length)} agents<//>
    <${Tile} label="Ready" value=${number(tasks.ready ?? 0)} href=${list({ state: "ready" })}>
      ${oldest ? html`oldest ready for <${Time} at=${oldest.since} brief />` : "no tasks wait for a claim"}<//>
    <${Tile} label="Wait before a claim" value=${flow?.waits ? lasting(flow.waits.median) : NOTHING}>
      ${flow?.waits ? `95 % within ${lasting(flow.waits.p95)}` : "no claims in this period"}<//>
    ${tasks.validating > 0 && html`<${Tile} label="Validating" value=${number(tasks.validating)}
      href=${list({ view: "checks" })}>
      ${waits.filter(Boolean).join(", ") || "by validators"}<//>`}
    <${Tile} label="Dead letters" value=${number(dead)} tone=${dead ? "bad" : ""}
      href=${address(project, "dead-letters")}>
      ${dead ? "need a person" : "none"}<//>
    <${Tile} label="Cost" value=${dollars(usage?.cost_usd)} href=${address(project, "usage")}>${tokens(usage)}<//>
  </div>`;
}

const completed = (flow) => flow.steps.reduce((sum, step) => sum + step.completed, 0);

function rate(flow) {
  const hours = Math.max((Date.parse(flow.now) - Date.parse(flow.since)) / 3.6e6, 1 / 60);
  return `in the last ${period(flow)}, ${briefNumber(Math.round(completed(flow) / hours))} per hour`;
}

function tokens(usage) {
  const sum = ["fresh", "cached", "written", "output"].reduce((all, name) => all + (usage?.[name] ?? 0), 0);
  return sum ? `${briefNumber(sum)} tokens` : "nothing reported";
}

const seconds = (step) => Date.parse(step.at) / 1000;

function Throughput({ data }) {
  const row = (step) => [seconds(step), step.completed, step.failed + step.lost];
  const rows = useMemo(() => data.steps.map(row), [data]);
  const { durations } = data;
  return html`
    <${Chart} series=${FLOW} rows=${rows} label="Tasks completed, and attempts failed or lost, over time" />
    ${durations && html`<p class="note">
      ${`Claims lasted ${lasting(durations.median)} (median), at most ${lasting(durations.longest)}.`}
    </p>`}`;
}

function Depth({ data }) {
  const row = (step) => [seconds(step), ...GROUPS.map((group) => step.depth[group])];
  const rows = useMemo(() => data.steps.map(row), [data]);
  return html`<${Chart} series=${DEPTH} rows=${rows} label="Open tasks over time, by state" />`;
}

function Tracks({ project, tracks }) {
  const names = useQuery(path(project, "tracks"), {}, { pause: 30_000 });
  const named = Object.fromEntries((names.data?.items ?? []).map((track) => [track.code, track.name]));
  const isRouted = Object.values(tracks).some((track) => track.assigned);
  return html`<table class="plain-table"><tbody>${Object.keys(tracks).sort().map((code) => {
    const { completed: done, in_progress: doing, pending, assigned } = tracks[code];
    const parts = [
      { name: "completed", value: done, tone: "good" },
      { name: "in progress", value: doing, tone: "work" },
      { name: "to do", value: pending, tone: "rest" },
    ];
    return html`<tr key=${code}>
      <td class="fit">
        <a href=${address(project, "tasks", null, { track: code })}><b class="mono">${code}</b> ${named[code] ?? ""}</a>
      </td>
      <td class="grow"><${Bar} label=${`Track ${code}`} parts=${parts} /></td>
      <td class="figures">${number(done)} of ${number(done + doing + pending)}</td>
      ${isRouted && html`<td class="fit text" title="Assigned to">${assigned?.join(", ") ?? NOTHING}</td>`}
    </tr>`;
  })}</tbody></table>`;
}

function Standing({ project, tasks, flow }) {
  const oldest = Object.fromEntries((flow.data?.oldest ?? []).map((one) => [one.state, one]));
  return html`<table class="plain-table"><tbody>
    ${STATES.filter((state) => tasks[state]).map((state) => html`<tr key=${state}>
      <td class="fit"><a href=${address(project, "tasks", null, { state })}><${State} state=${state} /></a></td>
      <td class="figures">${number(tasks[state])}</td>
      <td class="grow only-wide">${oldest[state] && html`<span class="faint">oldest </span>
        <${TaskLink} project=${project} task=${oldest[state].key} class="mono" title=${oldest[state].key}>
          ${shortKey(oldest[state].key)}<//>`}</td>
      <td class="figures faint">${oldest[state] && html`<${Time} at=${oldest[state].since} brief />`}</td>
    </tr>`)}
  </tbody></table>`;
}

function Team({ project, agents, flow }) {
  if (!agents.length) {
    return html`<${Panel} title="Agents"><p class="faint">No agents yet.</p><//>`;
  }
  const did = Object.fromEntries((flow?.agents ?? []).map((agent) => [agent.agent, agent]));
  const seen = (agent) => Date.parse(agent.last_seen);
  const first = [...agents].sort((a, b) => b.tasks.length - a.tasks.length || seen(b) - seen(a)).slice(0, MOST_AGENTS);
  return html`<section class="panel">
    <div class="panel-head"><h2>Agents</h2><a href=${address(project, "agents")}>All ${number(agents.length)}</a></div>
    <div class="scroll" tabindex="0"><table class="table">
      <thead><tr>
        <th>Agent</th><th>Status</th><th>Works on</th>
        <th class="right">Busy</th><th class="right">Completed</th><th class="right">Last seen</th>
      </tr></thead>
      <tbody>${first.map((agent) => html`<tr key=${agent.name}>
        <td><b class="text">${agent.name}</b> <span class="faint text">${agent.type}</span></td>
        <td><${AgentStatus} agent=${agent} /></td>
        <td class="grow"><${Holds} project=${project} tasks=${agent.tasks} /></td>
        <td class="figures">${did[agent.name] ? percent(did[agent.name].busy) : NOTHING}</td>
        <td class="figures">${number(did[agent.name]?.completed ?? 0)}</td>
        <td class="figures"><${Time} at=${agent.last_seen} /></td>
      </tr>`)}</tbody>
    </table></div>
  </section>`;
}

function Holds({ project, tasks }) {
  if (!tasks.length) return html`<span class="faint">${NOTHING}</span>`;
  return html`<${TaskLink} project=${project} task=${tasks[0]} class="mono" title=${tasks[0]}>${shortKey(tasks[0])}<//>
    ${tasks.length > 1 && html`<span class="faint"> and ${tasks.length - 1} more</span>`}`;
}
