// Triggers: tasks created by events or signed webhook deliveries.
import { PUBLIC_ROOT, path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { Value } from "../parts/values.js";
import { Time } from "../time.js";
import { counted, number } from "../format.js";
import { trigger as triggerForm } from "./source-forms.js";
import { Last, Switch, Verbs } from "./sources.js";

export function Triggers({ project, ask }) {
  const triggers = useQuery(path(project, "triggers"), {}, { pause: 1000 });
  return html`<section aria-labelledby="by-events">
    <h2 id="by-events" class="section-head">Triggers</h2>
    <${Loaded} of=${triggers} lines=${3} what="Loading the triggers">${({ items }) => items.length
      ? html`<ul class="cards sources">${items.map((one) => html`
          <${Trigger} key=${one.name} project=${project} trigger=${one} ask=${ask} />`)}</ul>`
      : html`<${Empty} title="No triggers yet">
          <p>A trigger creates its tasks after an event or a webhook delivery:</p>
          <pre class="terminal" tabindex="0">tenure trigger add diagnose "Why did {event.key} fail?" --on task.dead_lettered</pre>
        <//>`}<//>
  </section>`;
}

function Trigger({ project, trigger, ask }) {
  const [isOpen, open] = useState(false);
  const isHook = trigger.on === "webhook";
  const when = Object.entries(trigger.filter).map(([where, value]) => `${where}: ${JSON.stringify(value)}`);
  return html`<li class=${`card source ${trigger.enabled ? "" : "off"}`} data-name=${trigger.name}>
    <div class="card-head">
      <span class="card-title text">${trigger.name}</span>
      <${Switch} isOn=${trigger.enabled} />
    </div>
    <p class="text quiet">${trigger.title}${trigger.tasks > 1 && html`
      <span class="faint"> and ${counted(trigger.tasks - 1, "more task")}</span>`}</p>
    <${Facts} of=${[
      ["On", html`<span class="mono">${trigger.on}</span>${isHook && html`
        <span class="faint"> signature: ${trigger.signature}</span>`}`],
      when.length && ["Where", html`<span class="mono">${when.join(", ")}</span>`],
      ["Last", html`<${Last} project=${project} source=${trigger} />`],
      ["Fired · failed · held back", [trigger.fired, trigger.failed, trigger.held_back].map(number).join(" · ")],
      ["Limit", `${number(trigger.most)} per hour`],
      trigger.previous_until && ["Old secret", html`valid until <${Time} at=${trigger.previous_until} />`],
    ]} />
    ${trigger.last_error && html`<p class="problem text">${trigger.last_error}</p>`}
    <details onToggle=${(event) => open(event.target.open)}>
      <summary>Template</summary>
      ${isOpen && html`<${Template} project=${project} listed=${trigger} isHook=${isHook} />`}
    </details>
    ${ask && html`<${Verbs} project=${project} noun="triggers" source=${trigger} ask=${ask}
      form=${() => triggerForm(project, trigger)} />`}
  </li>`;
}

function Template({ project, listed, isHook }) {
  const whole = useQuery(path(project, "triggers", listed.name), {}, { follows: listed });
  return html`
    ${isHook && html`<p class="hint">Deliveries go to${" "}
      <code>${`${location.origin}${PUBLIC_ROOT}${path(project, "triggers", listed.name, "deliveries")}`}</code></p>`}
    <${Loaded} of=${whole} lines=${3}>${({ template }) => html`<${Value} value=${template} />`}<//>`;
}
