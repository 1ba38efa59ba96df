// The projects of the store. A single project is opened at once.
import { path } from "../api.js";
import { html, useEffect } from "../html.js";
import { useQuery } from "../query.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Bar } from "../parts/states.js";
import { address, go } from "../router.js";
import { HELD, OPEN, counted, number } from "../format.js";

// Names that earlier versions took: a browser takes them out of an address.
const NO_ADDRESS = [".", ".."];

export function Projects() {
  const found = useQuery("/projects");
  useEffect(() => {
    const names = found.data?.items ?? [];
    if (names.length === 1 && !NO_ADDRESS.includes(names[0])) go(address(names[0]), { replace: true });
  }, [found.data]);
  return html`
    <header class="page-head"><h1>Projects</h1></header>
    <${Loaded} of=${found} what="Loading the projects">${({ items }) => items.length
      ? html`<ul class="cards">${items.map((name) => NO_ADDRESS.includes(name)
        ? html`<li key=${name} class="card"><span class="card-title">${name}</span>
          <span class="faint">no address can have this name: use the command line</span></li>`
        : html`<${Project} key=${name} name=${name} />`)}</ul>`
      : html`<${Empty} title="No projects yet"><p><code>tenure init</code> creates one in a folder.</p><//>`}<//>`;
}

function Project({ name }) {
  const { data } = useQuery(path(name), {}, { pause: 3000 });
  return html`<li class="card">
    <a class="card-link" href=${address(name)}>
      <span class="card-title">${name}</span>${data ? html`<${Counts} tasks=${data.tasks} />` : "…"}
    </a>
  </li>`;
}

function Counts({ tasks }) {
  const sum = (states) => states.reduce((total, state) => total + (tasks[state] ?? 0), 0);
  const [open, held, completed] = [sum(OPEN), sum(HELD), tasks.completed ?? 0];
  return html`
    <span class="faint">${`${counted(open, "open task")}, ${number(completed)} completed`}</span>
    <${Bar} label="Tasks" parts=${[
      { name: "completed", value: completed, tone: "good" },
      { name: "held", value: held, tone: "work" },
      { name: "other open", value: open - held, tone: "rest" },
    ]} />`;
}
