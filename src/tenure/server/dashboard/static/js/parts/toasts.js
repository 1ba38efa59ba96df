// Short notices about actions, with Undo if it is possible.
import { Problem, command, path } from "../api.js";
import { html } from "../html.js";
import { acted } from "../live.js";
import { Signal, useSignal } from "../signal.js";
import { Icon } from "./icons.js";

const STAYS = { good: 7000, odd: 12_000, bad: 12_000 }; // milliseconds
const MOST = 4; // at once

const shown = new Signal([]);
let count = 0;

// { text, hint, tone: good | odd | bad, undo: { project, id } }
export function toast(fields) {
  const one = { tone: "good", id: ++count, ...fields };
  shown.set([...shown.value, one].slice(-MOST));
  setTimeout(() => dismiss(one.id), STAYS[one.tone]);
}

function dismiss(id) {
  shown.set(shown.value.filter((one) => one.id !== id));
}

// Run a command and show its outcome; returns the outcome, or null after an error. Only changes of tasks can be undone.
// `throws`: an error or a refusal is thrown instead, for the dialog that asked.
export async function done(project, message, run, { canUndo = true, throws = false } = {}) {
  try {
    const outcome = await run();
    if (throws && !outcome.ok) throw new Problem({ ...outcome, detail: outcome.message || outcome.outcome });
    const undo = canUndo && outcome.command_id ? { project, id: outcome.command_id } : null;
    if (outcome.ok) toast({ text: message, undo });
    else toast({ tone: "odd", text: outcome.message || outcome.outcome, hint: outcome.hint });
    acted();
    return outcome;
  } catch (error) {
    if (throws) throw error;
    toast({ tone: "bad", text: error.message, hint: error.hint });
    return null;
  }
}

function undoLast({ undo, id }) {
  dismiss(id);
  const run = () => command(path(undo.project, "undo"), { command_id: undo.id });
  return done(undo.project, "Undone", run, { canUndo: false });
}

export function Toasts() {
  const all = useSignal(shown);
  return html`<div class="toasts" role="status" aria-live="polite">
    ${all.map((one) => html`<div key=${one.id} class=${`toast ${one.tone}`}>
      <div class="toast-text text">${one.text}${one.hint && html`<div class="faint">${one.hint}</div>`}</div>
      ${one.undo && html`<button class="button small" onClick=${() => undoLast(one)}>Undo</button>`}
      <button class="button ghost small" aria-label="Close" onClick=${() => dismiss(one.id)}>
        <${Icon} name="close" />
      </button>
    </div>`)}
  </div>`;
}
