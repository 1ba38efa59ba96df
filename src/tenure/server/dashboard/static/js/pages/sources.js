// Common parts of schedules and triggers: on or off, last tasks, actions of admins.
import { command, path } from "../api.js";
import { html } from "../html.js";
import { done } from "../parts/toasts.js";
import { TaskLink, address } from "../router.js";
import { Time } from "../time.js";

export function Switch({ isOn, off = "paused" }) {
  return html`<span class="dot-label"><i class=${`dot ${isOn ? "good" : ""}`}></i>${isOn ? "on" : off}</span>`;
}

// The last tasks that it created: one task, or a dag.
export function Last({ project, source }) {
  if (!source.last_at) return html`<span class="faint">nothing yet</span>`;
  const made = source.last_made;
  const isDag = made?.startsWith("dag_");
  return html`<${Time} at=${source.last_at} />${made && html`: ${isDag
    ? html`<a class="mono" href=${address(project, "dags", made)}>its tasks</a>`
    : html`<${TaskLink} project=${project} task=${made} class="mono" />`}`}`;
}

// `noun` is the route's: schedules or triggers. `form`: makes the form that changes it.
export function Verbs({ project, noun, source, ask, form, canRun = false }) {
  const send = (verb, message, canUndo = false) =>
    done(project, message, () => command(path(project, noun, source.name, verb)), { canUndo });
  const removal = {
    title: `Remove: ${source.name}`, action: "Remove", danger: true, text: "Tasks that it created stay.",
    run: () => send("remove", `Removed: ${source.name}`),
  };
  return html`<div class="card-actions">
    ${canRun && html`<button class="button small" onClick=${() => send("run", `Ran: ${source.name}`, true)}>
      Run now</button>`}
    <button class="button small" onClick=${async () => ask(await form())}>Edit</button>
    ${source.enabled
      ? html`<button class="button small" onClick=${() => send("pause", `Paused: ${source.name}`)}>Pause</button>`
      : html`<button class="button small" onClick=${() => send("resume", `Resumed: ${source.name}`)}>Resume</button>`}
    <button class="button small danger-text" onClick=${() => ask(removal)}>Remove</button>
  </div>`;
}
