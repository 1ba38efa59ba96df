// All tasks as a table or a board, and the results that wait for validation.
// Filters and order are in the address.
import { get, path } from "../api.js";
import { html, useLayoutEffect, useState } from "../html.js";
import { useQuery } from "../query.js";
import { Chips, Choice, Clear, Tabs, TextFilter } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { address, filter, useRoute } from "../router.js";
import { STATES, inWords, number } from "../format.js";
import { BatchBar } from "./task-actions.js";
import { Board } from "./board.js";
import { SavedViews } from "./saved-views.js";
import { NewTask } from "./task-form.js";
import { Validations } from "./validations.js";
import { TaskTable } from "./table.js";

const PAGE = 50;
const MOST = 1000; // the server's largest page
const VIEWS = [["table", "Table"], ["board", "Board"], ["checks", "Validation"]];
const ONE = ["agent", "tag", "text", "dag", "type", "parent", "session"];
// The tiers of core/priority.py: the smallest number is the most urgent.
const PRIORITIES = [
  ["", "Any priority"], ["0-9", "critical"], ["10-29", "high"], ["30-59", "normal"], ["60-79", "low"],
  ["80-100", "background"],
];
const NOT_FILTERS = ["view", "order"]; // of the address

// The filters of the address as API parameters.
function asked(query) {
  const params = { state: query.getAll("state"), track: query.getAll("track") };
  for (const name of ONE) params[name] = query.get(name);
  const [low, high] = (query.get("priority") ?? "").split("-").map(Number);
  if (query.get("priority") && Number.isFinite(high)) params.priority_range = JSON.stringify([low, high]);
  if (query.get("archived")) params.archived = "true";
  return params;
}

export function Tasks({ project }) {
  const { query } = useRoute();
  const view = VIEWS.some(([name]) => name === query.get("view")) ? query.get("view") : "table";
  return html`
    <header class="page-head">
      <h1>Tasks</h1>
      <${NewTask} project=${project} />
      <${Tabs} label="View" value=${view} options=${VIEWS}
        onChange=${(value) => filter({ view: value === "table" ? "" : value })} />
    </header>
    ${view !== "checks" && html`<${SavedViews} key=${project} project=${project} query=${query} />`}
    ${view !== "checks" && html`<${Filters} project=${project} query=${query} withStates=${view === "table"} />`}
    ${view === "checks" && html`<${Validations} project=${project} />`}
    ${view === "board" && html`<${Board} project=${project} params=${asked(query)} />`}
    ${view === "table" && html`<${Listed} project=${project} query=${query} />`}`;
}

function Filters({ project, query, withStates }) {
  const tracks = useQuery(path(project, "tracks"), {}, { pause: 30_000 });
  const agents = useQuery(path(project, "agents"), {}, { pause: 10_000 });
  const value = (name) => query.get(name) ?? "";
  const set = (name) => (wanted) => filter({ [name]: wanted });
  const filters = [...query.keys()].filter((name) => !NOT_FILTERS.includes(name));
  const clear = () => filter(Object.fromEntries(filters.map((name) => [name, ""])));
  const known = (tracks.data?.items ?? []).map((track) => [track.code, `${track.code} ${track.name}`]);
  const codes = [["", "All tracks"], ...known];
  const names = (agents.data?.items ?? []).map((agent) => agent.name);
  return html`<div class="filters">
    <${TextFilter} label="Text" value=${value("text")} placeholder="any word" onChange=${set("text")} />
    <${Choice} label="Track" value=${value("track")} options=${codes} onChange=${set("track")} />
    <${TextFilter} label="Agent" value=${value("agent")} options=${names} onChange=${set("agent")} />
    <${TextFilter} label="Type" value=${value("type")} onChange=${set("type")} />
    <${TextFilter} label="Tag" value=${value("tag")} onChange=${set("tag")} />
    <${Choice} label="Priority" value=${value("priority")} options=${PRIORITIES} onChange=${set("priority")} />
    ${value("dag") && html`<${DagFilter} project=${project} dag=${value("dag")} />`}
    ${filters.length > 0 && html`<${Clear} onClick=${clear} />`}
    ${withStates && html`<${Chips} label="State" values=${query.getAll("state")}
      options=${STATES.map((state) => [state, inWords(state)])} onChange=${set("state")} />`}
  </div>`;
}

function DagFilter({ project, dag }) {
  return html`<div class="control">
    <span class="label">Dag</span>
    <a class="chip" aria-pressed="true" href=${address(project, "dags", dag)}>${dag}</a>
  </div>`;
}

// The table, loaded page by page, with its selection.
function Listed({ project, query }) {
  const order = query.get("order") ?? "-created_at";
  const params = { ...asked(query), order };
  const shape = JSON.stringify(params);
  const [wanted, setWanted] = useState(PAGE);
  const [further, setFurther] = useState({ pages: [], next: null });
  const [selected, select] = useState(() => new Set());
  useLayoutEffect(() => {
    setWanted(PAGE);
    setFurther({ pages: [], next: null });
    select(new Set());
  }, [shape]);
  const first = useQuery(path(project, "tasks"), { ...params, limit: wanted }, { pause: 2500, isSpared: true });
  const items = [...(first.data?.items ?? []), ...further.pages.flat()];
  const next = further.pages.length ? further.next : first.data?.next;

  async function more() {
    if (wanted < MOST) {
      setWanted(Math.min(MOST, wanted + 2 * PAGE));
      return;
    }
    // Further pages are not refreshed.
    const page = await get(path(project, "tasks"), { ...params, limit: MOST, after: next });
    setFurther({ pages: [...further.pages, page.items], next: page.next });
  }

  return html`
    <${Loaded} of=${first} lines=${12} what="Loading the tasks">${() => items.length
      ? html`
        <${TaskTable} key=${shape} project=${project} items=${items} order=${order}
          selected=${selected} select=${select} />
        <p class="note">
          ${`${number(items.length)} shown. `}
          ${next && html`<button class="button small" onClick=${more}>Show more</button>`}
        </p>`
      : html`<${Nothing} isFiltered=${[...query.keys()].length > 0} />`}<//>
    <${BatchBar} project=${project} tasks=${items.filter((task) => selected.has(task.id))}
      clear=${() => select(new Set())} />`;
}

function Nothing({ isFiltered }) {
  if (isFiltered) return html`<${Empty} title="No task matches">Remove a filter to see more.<//>`;
  return html`<${Empty} title="No tasks yet"><p>New task adds one, and so does <code>tenure add "Write the parser"</code>.</p><//>`;
}
