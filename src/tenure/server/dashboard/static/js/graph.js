// The layout of a dag. Large dags are drawn with groups instead of tasks.
const MOST = 500; // tasks; more take too long to lay out and cannot be read
const MANY = 150; // nodes
const PASSED = 1000; // levels that all edges together pass by: the layout has a node for each
const FEW = 3; // groups of up to this size are drawn as single tasks
export const WIDTH = 168;
export const HEIGHT = 42;

// The level of each task: one more than the highest level of its dependencies.
export function levels(keys, edges) {
  const needs = new Map(keys.map((key) => [key, []]));
  for (const edge of edges) if (needs.has(edge.task) && needs.has(edge.needs)) needs.get(edge.task).push(edge.needs);
  const level = new Map();
  for (const key of keys) {
    const path = [key];
    while (path.length) {
      const top = path[path.length - 1];
      const next = needs.get(top).find((one) => !level.has(one));
      if (next !== undefined) {
        path.push(next);
        continue;
      }
      level.set(top, needs.get(top).reduce((most, one) => Math.max(most, level.get(one) + 1), 0));
      path.pop();
    }
  }
  return level;
}

// How tasks become nodes: each one, those of one level and state, or those of one track, level and state.
export const GROUPS = [["task", "Tasks"], ["level", "Levels"], ["track", "Tracks"]];
export const groupAtFirst = (tasks) => (tasks.length > MOST ? "level" : "task");

// { nodes: [{ id, tasks }], edges: [{ from, to }] }. In groups, tasks of one level and state become one node, unless the
// group is in `opened`. Edges go from a lower level to a higher one, so the graph stays acyclic.
export function reduced(tasks, edges, group = groupAtFirst(tasks), opened = new Set()) {
  const keys = tasks.map((task) => task.key);
  const home = new Map(keys.map((key) => [key, key]));
  let nodes = tasks.map((task) => ({ id: task.key, tasks: [task.key] }));
  if (group !== "task") {
    const level = levels(keys, edges);
    const groups = new Map();
    for (const task of tasks) {
      const track = group === "track" ? `${trackOf(task.key)}:` : "";
      const name = `${track}${level.get(task.key)}:${task.state}`;
      if (groups.has(name)) groups.get(name).push(task.key);
      else groups.set(name, [task.key]);
    }
    for (const [name, members] of groups) {
      if (members.length > FEW && !opened.has(name)) for (const key of members) home.set(key, name);
    }
    const made = new Map();
    for (const key of keys) {
      const id = home.get(key);
      if (made.has(id)) made.get(id).tasks.push(key);
      else made.set(id, { id, tasks: [key] });
    }
    nodes = [...made.values()];
  }
  const seen = new Map();
  for (const edge of edges) {
    const [from, to] = [home.get(edge.needs), home.get(edge.task)];
    if (from !== undefined && to !== undefined && from !== to) seen.set(JSON.stringify([from, to]), { from, to });
  }
  return { nodes, edges: [...seen.values()], home, isReduced: nodes.length < tasks.length };
}

const trackOf = (key) => /^[A-Za-z]+/.exec(key)?.[0] ?? "";

// The same with positions: the centre of each node, the points of each edge, and the total size.
export async function laidOut({ nodes, edges }, direction) {
  const dagre = await import("../vendor/dagre.js");
  const graph = new dagre.Graph();
  const ranker = nodes.length > MANY ? "longest-path" : "network-simplex"; // the better one is slow
  graph.setGraph({ rankdir: direction, nodesep: 14, ranksep: 44, marginx: 16, marginy: 16, ranker });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const node of nodes) graph.setNode(node.id, { width: WIDTH, height: HEIGHT });
  for (const edge of placed(nodes, edges)) graph.setEdge(edge.from, edge.to);
  dagre.layout(graph);
  return {
    nodes: nodes.map((node) => ({ ...node, x: graph.node(node.id).x, y: graph.node(node.id).y })),
    edges: edges.map((edge) => ({ ...edge, points: docked(graph, edge, direction) })),
    direction,
    width: graph.graph().width,
    height: graph.graph().height,
  };
}

// The edges that take part in the layout: without the longest ones where they would pass by too many levels. Those
// between neighbours are always there, so every node keeps its level; the others are drawn from end to end.
function placed(nodes, edges) {
  const level = levels(nodes.map(({ id }) => id), edges.map(({ from, to }) => ({ needs: from, task: to })));
  const passes = ({ from, to }) => level.get(to) - level.get(from) - 1;
  let sum = 0;
  return [...edges].sort((one, other) => passes(one) - passes(other)).filter((edge) => (sum += passes(edge)) <= PASSED);
}

// An edge starts and ends at the middle of a side.
function docked(graph, { from, to }, direction) {
  const [source, target] = [graph.node(from), graph.node(to)];
  const inner = (graph.edge(from, to)?.points ?? []).slice(1, -1);
  const between = inner.length > 1 ? inner : []; // a single point between neighbours would make a wave
  const [right, down] = direction === "LR" ? [WIDTH / 2, 0] : [0, HEIGHT / 2];
  return [{ x: source.x + right, y: source.y + down }, ...between, { x: target.x - right, y: target.y - down }];
}

// A smooth curve through an edge's points, straight at both ends.
export function curve(points, direction) {
  const [first, ...rest] = points;
  let at = first;
  let drawn = `M${at.x},${at.y}`;
  for (const next of rest) {
    const [x, y] = [(at.x + next.x) / 2, (at.y + next.y) / 2];
    drawn += direction === "LR" ? `C${x},${at.y} ${x},${next.y}` : `C${at.x},${y} ${next.x},${y}`;
    drawn += ` ${next.x},${next.y}`;
    at = next;
  }
  return drawn;
}
