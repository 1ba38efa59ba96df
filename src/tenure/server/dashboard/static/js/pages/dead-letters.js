// Tasks that ran out of attempts: errors, attempts, and actions.
import { command, path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useOperator } from "../me.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { done } from "../parts/toasts.js";
import { Value } from "../parts/values.js";
import { TaskLink, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { counted, shortKey } from "../format.js";
import { Actions, BatchBar } from "./task-actions.js";

const WHICH = [["", "Waiting"], ["yes", "Resolved"]];
const keyOf = (letter) => letter.key ?? letter.task;

export function DeadLetters({ project }) {
  const { query } = useRoute();
  const which = query.get("resolved") === "yes" ? "yes" : "";
  const letters = useQuery(path(project, "dead-letters"), { resolved: which && "true" });
  const [selected, select] = useState(() => new Set());
  const items = [...(letters.data?.items ?? [])].reverse();
  const chosen = items.filter((letter) => selected.has(letter.id));
  function toggle(id) {
    const next = new Set(selected);
    if (!next.delete(id)) next.add(id);
    select(next);
  }
  return html`
    <header class="page-head">
      <h1>Dead letters</h1>
      <${Tabs} label="Which" value=${which} options=${WHICH} onChange=${(value) => filter({ resolved: value })} />
    </header>
    <${Loaded} of=${letters} what="Loading the dead letters">${() => items.length
      ? html`<ul class="letters">${items.map((letter) => html`<${Letter} key=${letter.id} project=${project}
          letter=${letter} isSelected=${selected.has(letter.id)} toggle=${() => toggle(letter.id)} />`)}</ul>`
      : html`<${Nothing} which=${which} />`}<//>
    <${BatchBar} project=${project} clear=${() => select(new Set())}
      tasks=${chosen.map((letter) => ({ key: keyOf(letter), state: "dead_lettered" }))} />`;
}

function Nothing({ which }) {
  if (which) return html`<${Empty} title="No resolved dead letters" />`;
  return html`<${Empty} title="No dead letters">
    A task that runs out of attempts, or fails with several agents, waits here for a person.
  <//>`;
}

function Letter({ project, letter, isSelected, toggle }) {
  const key = keyOf(letter);
  const isOpen = !letter.resolution;
  return html`<li class=${`panel dead-letter ${isSelected ? "selected" : ""}`} data-key=${key}>
    <div class="dead-head">
      ${isOpen && html`
        <input type="checkbox" aria-label=${`Select ${key}`} checked=${isSelected} onChange=${toggle} />`}
      <${TaskLink} project=${project} task=${key} class="mono strong" title=${key}>${letter.ref ?? key}<//>
      ${letter.title && html`<${TaskLink} project=${project} task=${key} class="text title-link">${letter.title}<//>`}
      <span class="tag bad">${letter.error_class}</span>
      ${letter.poison_pill && html`<span class="tag odd" title="it failed with several agents">poison</span>`}
      <span class="spacer"></span>
      <span class="faint"><${Time} at=${letter.dead_lettered_at} /></span>
    </div>
    <p class="dead-error text" tabindex="0">${letter.why || letter.error || "No error message."}</p>
    ${isOpen && html`<${Behind} project=${project} letter=${letter} />`}
    ${letter.history?.length > 0 && html`<details>
      <summary>${counted(letter.history.length, "attempt")}</summary><${Value} value=${letter.history} />
    </details>`}
    ${isOpen ? html`<${Ways} project=${project} name=${key} />` : html`<${Resolution} letter=${letter} />`}
  </li>`;
}

// The tasks that wait for it.
function Behind({ project, letter }) {
  if (!letter.blocks) return html`<p class="faint">No task waits behind it.</p>`;
  const link = (key) => html`<${TaskLink} key=${key} project=${project} task=${key} class="mono" title=${key}>
    ${shortKey(key)}<//>${" "}`;
  const more = letter.blocks - letter.waiting.length;
  return html`<p class="behind"><b>${counted(letter.blocks, "task waits", "tasks wait")} behind it:</b>${" "}
    ${letter.waiting.map(link)}${more > 0 && html`<span class="faint">and ${more} more</span>`}</p>`;
}

function Resolution({ letter }) {
  const by = letter.reviewed_by ? ` by ${letter.reviewed_by}` : "";
  const note = letter.note ? `: ${letter.note}` : "";
  return html`<p class="faint text">${`${letter.resolution}${by}${note}`}, <${Time} at=${letter.reviewed_at} /></p>`;
}

// Retry runs at once; the other button asks for a note.
function Ways({ project, name }) {
  const kept = useQuery(path(project, "tasks", name, "results"), {}, { isLive: false });
  const hasKept = (kept.data?.items ?? []).some((result) => !result.accepted);
  const retry = () => done(project, `Retried: ${name}`, () => command(path(project, "tasks", name, "retry")));
  if (!useOperator()) return null;
  return html`<div class="card-actions">
    <button class="button primary" onClick=${retry}>Retry</button>
    <${Actions} project=${project} task=${{ key: name, state: "dead_lettered", hasKept }}
      names=${{ retry: "Retry with a note" }} />
  </div>`;
}
