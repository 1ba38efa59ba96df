// The failure watch: creates a task that investigates when failures of a tag, type or track cluster.
import { command, path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Loaded } from "../parts/notices.js";
import { Panel } from "../parts/panels.js";
import { done } from "../parts/toasts.js";
import { TaskLink } from "../router.js";
import { counted, lasting, number, percent } from "../format.js";
import { Switch } from "./sources.js";

const MOST = 12; // subjects, the worst first

export function Watch({ project, ask }) {
  const watched = useQuery(path(project, "watch"), {}, { pause: 5000 });
  return html`<${Panel} title="Failure watch">
    <${Loaded} of=${watched} lines=${3} what="Loading the watch">${(data) => html`
      <${Seen} project=${project} watch=${data} reload=${watched.reload} isAdmin=${ask !== null} />`}<//>
  <//>`;
}

const isSuspect = ({ rate, attempts }, { threshold, least }) => rate >= threshold && attempts >= least;

function Seen({ project, watch, reload, isAdmin }) {
  const subjects = watch.subjects.filter((subject) => subject.failed > 0).slice(0, MOST);
  const rule = `Creates a task that investigates if at least ${percent(watch.threshold)} of \
${counted(watch.least, "attempt")} or more fail within ${lasting(watch.window)}.`;
  return html`
    <p class="watch-line"><${Switch} isOn=${watch.on} off="off" /> <span class="quiet">${rule}</span></p>
    ${subjects.length
      ? html`<table class="plain-table"><tbody>${subjects.map((subject) => html`<tr key=${subject.subject}>
          <td class="model-cell mono text">${subject.subject}</td>
          <td class="grow"><span class="meter">
            <span class=${`fill ${isSuspect(subject, watch) ? "bad" : ""}`}
              style=${{ width: `${100 * subject.rate}%` }}></span></span></td>
          <td class="figures">${`${number(subject.failed)} of ${number(subject.attempts)} failed`}</td>
          <td class="figures">${subject.task && html`
            <${TaskLink} project=${project} task=${subject.task} class="mono" />`}</td>
        </tr>`)}</tbody></table>`
      : html`<p class="faint">No failures in this period.</p>`}
    ${isAdmin && html`<div class="card-actions"><${Turn} project=${project} watch=${watch} reload=${reload} /></div>`}`;
}

// Turned on again, it uses the rules that are shown.
function Turn({ project, watch, reload }) {
  const { threshold, least, by, track, priority } = watch;
  const rules = { window: watch.window, threshold, least, by, track, priority };
  async function send(sent, message) {
    await done(project, message, () => command(path(project, "watch"), { watch: sent }, "PUT"), { canUndo: false });
    reload(); // it refreshes rarely
  }
  return watch.on
    ? html`<button class="button small" onClick=${() => send(null, "The watch is off")}>Turn off</button>`
    : html`<button class="button small" onClick=${() => send(rules, "The watch is on")}>Turn on</button>`;
}
