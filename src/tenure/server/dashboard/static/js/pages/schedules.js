// Schedules, triggers, and the watch for frequent failures.
import { path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useAdmin } from "../me.js";
import { Ask } from "../parts/dialogs.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { Secret } from "../parts/secret.js";
import { Value } from "../parts/values.js";
import { Time } from "../time.js";
import { NOTHING, counted, number } from "../format.js";
import { schedule as scheduleForm, trigger as triggerForm } from "./source-forms.js";
import { Last, Switch, Verbs } from "./sources.js";
import { Triggers } from "./triggers.js";
import { Watch } from "./watch.js";

export function Schedules({ project, status }) {
  const schedules = useQuery(path(project, "schedules"), {}, { pause: 1000 });
  const [asked, ask] = useState(null);
  const [revealed, reveal] = useState(null);
  const isAdmin = useAdmin();
  const all = { project, ask: isAdmin ? ask : null };
  return html`
    <header class="page-head">
      <h1>Schedules and triggers</h1>
      ${isAdmin && html`<div class="actions">
        <button class="button" onClick=${async () => ask(await scheduleForm(project))}>New schedule</button>
        <button class="button" onClick=${async () => ask(await triggerForm(project, null, reveal))}>New trigger</button>
      </div>`}
    </header>
    <${NoLeader} now=${status.data} />
    <div class="stack wide-gap">
      <section aria-labelledby="by-the-clock">
        <h2 id="by-the-clock" class="section-head">Schedules</h2>
        <${Loaded} of=${schedules} lines=${3} what="Loading the schedules">${({ items }) => items.length
          ? html`<ul class="cards sources">${items.map((one) => html`
              <${Schedule} key=${one.name} schedule=${one} ...${all} />`)}</ul>`
          : html`<${Empty} title="No schedules yet">
              <p>A schedule creates its tasks at given times:</p>
              <pre class="terminal" tabindex="0">tenure schedule add nightly "0 3 * * *" "Read the news"</pre>
            <//>`}<//>
      </section>
      <${Triggers} ...${all} />
      <${Watch} ...${all} />
    </div>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}
    ${revealed && html`<${Secret} ...${revealed} close=${() => reveal(null)}
      hint="It is not shown again. The sender signs its deliveries with it." />`}`;
}

// The leader of the store fires schedules and triggers: without one they do not run.
function NoLeader({ now }) {
  const on = Object.values(now?.sources ?? {}).reduce((sum, count) => sum + count, 0);
  if (!now || now.coordinator || !on) return null;
  return html`<div class="banner odd" role="status">
    Schedules and triggers do not run now: start <code>tenure daemon</code> or <code>tenure serve</code>.
  </div>`;
}

function Schedule({ project, schedule, ask }) {
  const [isOpen, open] = useState(false);
  return html`<li class=${`card source ${schedule.enabled ? "" : "off"}`} data-name=${schedule.name}>
    <div class="card-head">
      <span class="card-title text">${schedule.name}</span>
      <${Switch} isOn=${schedule.enabled} />
    </div>
    <p class="text quiet">${schedule.title}${schedule.tasks > 1 && html`
      <span class="faint"> and ${counted(schedule.tasks - 1, "more task")}</span>`}</p>
    <${Facts} of=${[
      ["When", html`<span class="mono">${schedule.cron}</span> <span class="faint">${schedule.zone}</span>`],
      ["Next", schedule.next_at ? html`<${Time} at=${schedule.next_at} />` : NOTHING],
      ["Last", html`<${Last} project=${project} source=${schedule} />`],
      ["Fired · missed · failed", [schedule.fired, schedule.missed, schedule.failed].map(number).join(" · ")],
      ["Paused because", schedule.reason],
    ]} />
    ${schedule.last_error && html`<p class="problem text">${schedule.last_error}</p>`}
    <details onToggle=${(event) => open(event.target.open)}>
      <summary>Next runs and template</summary>
      ${isOpen && html`<${Ticks} project=${project} listed=${schedule} />`}
    </details>
    ${ask && html`<${Verbs} project=${project} noun="schedules" source=${schedule} ask=${ask} canRun
      form=${() => scheduleForm(project, schedule)} />`}
  </li>`;
}

function Ticks({ project, listed }) {
  const whole = useQuery(path(project, "schedules", listed.name), {}, { follows: listed });
  return html`<${Loaded} of=${whole} lines=${3}>${({ ticks, template, misfire, enabled }) => html`
    ${!enabled && html`<p class="faint">The schedule is paused: these would be its next runs.</p>`}
    <ol class="ticks">${ticks.map((tick) => html`<li key=${tick.at}>
      <span class="mono">${tick.local}</span> <span class="faint"><${Time} at=${tick.at} /></span>
    </li>`)}</ol>
    <p class="hint">${MISFIRES[misfire]}</p>
    <${Value} value=${template} />`}<//>`;
}

const MISFIRES = {
  skip: "Missed runs are skipped.",
  once: "Of missed runs, only the last runs later.",
  all: "All missed runs run later.",
};
