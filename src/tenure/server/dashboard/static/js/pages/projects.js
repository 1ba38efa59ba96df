// Where a person begins: the projects of the store. With one alone there is nothing to choose.
import { path } from "../api.js";
import { html, useEffect } from "../html.js";
import { useLook } from "../look.js";
import { Empty, Looked } from "../parts/notices.js";
import { Bar } from "../parts/states.js";
import { address, go } from "../router.js";
import { HELD, OPEN, counted, number } from "../words.js";

export function Projects() {
  const found = useLook("/projects");
  useEffect(() => {
    const names = found.data?.items ?? [];
    if (names.length === 1) go(address(names[0]), { replace: true });
  }, [found.data]);
  return html`<main id="main" class="page narrow" tabindex="-1">
    <h1>Projects</h1>
    <${Looked} of=${found} what="Loading the projects">${({ items }) => items.length
      ? html`<ul class="cards">${items.map((name) => html`<${Project} key=${name} name=${name} />`)}</ul>`
      : html`<${Empty} title="No project yet"><p><code>tenure init</code> in a folder makes one.</p><//>`}<//>
  </main>`;
}

function Project({ name }) {
  const { data } = useLook(path(name), {}, { pause: 3000 });
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
