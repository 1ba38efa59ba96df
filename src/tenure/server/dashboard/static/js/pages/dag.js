// The graph of one dag: states of its tasks, live, and the critical path.
import { path } from "../api.js";
import { html, useEffect, useMemo, useState } from "../html.js";
import { GROUPS, HEIGHT, WIDTH, curve, groupAtFirst, laidOut, reduced } from "../graph.js";
import { onEvent } from "../live.js";
import { useQuery } from "../query.js";
import { Canvas } from "../parts/canvas.js";
import { Tabs } from "../parts/filters.js";
import { Loading, Loaded } from "../parts/notices.js";
import { Bar, State } from "../parts/states.js";
import { address, go } from "../router.js";
import { MARKS, STATES, counted, inWords, number, shortKey } from "../format.js";
import { partsOf } from "./dags.js";

const BOX = { width: WIDTH, height: HEIGHT };
const DRAWN = 500; // tasks that are drawn one by one
const NARROW = 700; // pixels: narrower graphs are drawn downwards

export function Dag({ project, id }) {
  const query = useQuery(path(project, "dags", id), {}, { pause: 4000 });
  const [moved, setMoved] = useState({}); // key → changes from events since the last query
  useEffect(() => setMoved({}), [query.data]);
  useEffect(() => onEvent(({ key, new_state: state, agent }) => {
    if (key && state) setMoved((before) => ({ ...before, [key]: { state, agent } }));
  }), []);
  return html`<${Loaded} of=${query} lines=${10} what="Loading the dag">${(dag) => html`
    <${Head} project=${project} dag=${dag} />
    <${Graph} project=${project} dag=${dag} moved=${moved} />`}<//>`;
}

function Head({ project, dag }) {
  const steps = dag.critical_path.length;
  return html`
    <header class="page-head">
      <div>
        <p class="crumbs"><a href=${address(project, "dags")}>Dags</a> / <span class="mono">${dag.id}</span></p>
        <h1 class="text">${dag.title || dag.plan || dag.tasks[0]?.title || dag.id}</h1>
      </div>
      <a class="button" href=${address(project, "tasks", null, { dag: dag.id })}>As a list</a>
    </header>
    <div class="dag-line">
      <${Bar} parts=${partsOf(dag)} />
      <span class="quiet">${number(dag.completed)} of ${counted(dag.total, "task")} completed</span>
      ${steps > 1 && html`<span class="quiet">
        <i class="swatch critical"></i>${counted(steps, "task")} on the critical path
      </span>`}
    </div>`;
}

function Graph({ project, dag, moved }) {
  const shape = JSON.stringify([dag.tasks.map((task) => task.key), dag.edges.map((edge) => [edge.needs, edge.task])]);
  const [drawn, setDrawn] = useState(null);
  const [group, setGroup] = useState(() => groupAtFirst(dag.tasks));
  const [opened, setOpened] = useState(() => new Set());
  useEffect(() => {
    let isOver = false;
    const small = reduced(dag.tasks, dag.edges, group, opened);
    laidOut(small, innerWidth < NARROW ? "TB" : "LR").then((layout) => {
      if (!isOver) setDrawn({ ...small, ...layout });
    });
    return () => {
      isOver = true;
    };
  }, [shape, group, opened]);
  const choose = (value) => {
    setOpened(new Set());
    setGroup(value);
  };
  const tasks = useMemo(() => {
    return new Map(dag.tasks.map((task) => [task.key, { ...task, ...moved[task.key] }]));
  }, [dag, moved]);
  const critical = useMemo(() => criticalSet(dag.critical_path, drawn?.home), [dag, drawn]);
  if (!drawn) return html`<${Loading} lines=${8} what="Drawing the dag" />`;
  const states = STATES.filter((state) => [...tasks.values()].some((task) => task.state === state));
  return html`
    ${drawn.isReduced && groupAtFirst(dag.tasks) === group && html`<div class="banner">
      ${`${number(dag.tasks.length)} tasks are too many to draw: tasks of one level and state are one node.`}
      ${" A press on a node shows its tasks."}
    </div>`}
    <div class="graph-head">
      <${Tabs} label="A node for" value=${group} options=${GROUPS.filter(([name]) => name !== "task" || dag.tasks.length <= DRAWN)}
        onChange=${choose} />
      ${opened.size > 0 && html`<button class="button small" onClick=${() => setOpened(new Set())}>Close the groups</button>`}
    </div>
    <${Canvas} width=${drawn.width} height=${drawn.height} label=${`Graph of ${dag.tasks.length} tasks`}
      focus=${focusOf(drawn.nodes, tasks)} box=${BOX}
      map=${drawn.nodes.map((node) => [node.x, node.y, `s-${tasks.get(node.tasks[0])?.state}`])}>
      <g>${drawn.edges.map((edge) => html`<${Edge} key=${`${edge.from}>${edge.to}`} edge=${edge}
        direction=${drawn.direction} isCritical=${critical.has(`${edge.from}>${edge.to}`)} />`)}</g>
      <g>${drawn.nodes.map((node) => html`<${Node} key=${node.id} project=${project} dag=${dag.id} node=${node}
        members=${node.tasks.map((key) => tasks.get(key)).filter(Boolean)} isCritical=${critical.has(node.id)}
        open=${() => setOpened((before) => new Set([...before, node.id]))} />`)}</g>
    <//>
    <ul class="key-list" aria-label="Legend">
      ${states.map((state) => html`<li key=${state}><${State} state=${state} /></li>`)}
    </ul>`;
}

// Where somebody looks first: a running task, else a ready one, else one that needs a person, else the start.
const FIRST = ["running", "claimed", "validating", "ready", "dead_lettered", "paused", "retrying"];

function focusOf(nodes, tasks) {
  for (const state of FIRST) {
    const found = nodes.find((node) => node.tasks.some((key) => tasks.get(key)?.state === state));
    if (found) return found;
  }
  return nodes[0];
}

// The nodes and edges on the critical path.
function criticalSet(keys, home) {
  const on = new Set();
  if (!home || keys.length < 2) return on;
  const ids = keys.map((key) => home.get(key));
  ids.forEach((id, index) => {
    on.add(id);
    if (index) on.add(`${ids[index - 1]}>${id}`).add(`${id}>${ids[index - 1]}`);
  });
  return on;
}

function Edge({ edge, direction, isCritical }) {
  const look = isCritical ? "edge critical" : "edge";
  const arrow = isCritical ? "url(#arrow-critical)" : "url(#arrow)";
  return html`<path class=${look} d=${curve(edge.points, direction)} marker-end=${arrow} />`;
}

// A task, or a group of them, which a press opens.
function Node({ project, dag, node, members, isCritical, open }) {
  if (!members.length) return null;
  const one = members.length === 1 ? members[0] : null;
  const { state } = members[0];
  const href = one ? address(project, "tasks", one.key) : address(project, "tasks", null, { dag, state });
  const name = one ? shortKey(one.key) : `${members.length} ${inWords(state)}`;
  const title = one ? one.title : "tasks of this level";
  const label = one
    ? [`${one.key}: ${one.title}`, inWords(state), one.agent && `held by ${one.agent}`].filter(Boolean).join(", ")
    : `${members.length} tasks, ${inWords(state)}`;
  const look = ["node", `s-${state}`, isCritical && "critical", !one && "group"].filter(Boolean).join(" ");
  function pressed(event) {
    if (event.metaKey || event.ctrlKey) return;
    event.preventDefault();
    if (one) go(href);
    else open();
  }
  return html`<a href=${href} class=${look} aria-label=${label} data-key=${one?.key} data-state=${state} onClick=${pressed}
    transform=${`translate(${node.x - WIDTH / 2},${node.y - HEIGHT / 2})`}>
    <title>${label}</title>
    ${!one && html`<rect class="behind" x="4" y="4" width=${WIDTH} height=${HEIGHT} rx="7" />`}
    <rect class="box" width=${WIDTH} height=${HEIGHT} rx="7" />
    <text class="node-far" x=${WIDTH / 2} y=${HEIGHT / 2} text-anchor="middle" dominant-baseline="central">${cut(name, 10)}</text>
    <text class="node-mark" x="12" y="18">${MARKS[state]}</text>
    <text class="node-key" x="28" y="18">${cut(name, 18)}</text>
    ${one?.agent && html`<text class="node-agent" x=${WIDTH - 10} y="18" text-anchor="end">${cut(one.agent, 8)}</text>`}
    <text class="node-title" x="12" y="33">${cut(title, 24)}</text>
  </a>`;
}

const cut = (text, room) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
