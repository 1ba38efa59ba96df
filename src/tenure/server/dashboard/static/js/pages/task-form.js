// The forms of a task: create, edit, change and retry. See Ask in parts/dialogs.js.
import { command, get, path } from "../api.js";
import { html, useState } from "../html.js";
import { useWriter } from "../me.js";
import { Ask } from "../parts/dialogs.js";
import { shownIn } from "../parts/fields.js";
import { Icon } from "../parts/icons.js";
import { done } from "../parts/toasts.js";
import { address, go } from "../router.js";
import { HELD } from "../format.js";

const OF_PROJECT = "the project's setting"; // what a new task gets for an empty field
const TIERS = [["0", "critical"], ["20", "high"], ["50", "normal"], ["70", "low"], ["90", "background"]];
const ON_LOST = [["retry", "others claim it at once"], ["back_off", "it waits as after a failure"], ["hold", "it waits for a person"]];

// What people write about a task, in the names of the API. `isNew`: only when a task is created.
const FIELDS = [
  { name: "title", label: "Title", required: true },
  {
    name: "description", label: "Description", kind: "long",
    hint: "What the agent must know. Markdown is shown as such.",
  },
  { name: "depends_on", label: "Waits for", kind: "list", isNew: true, hint: "Keys of tasks, separated by spaces." },
  {
    name: "track", label: "Track", isNew: true, pattern: "[A-Za-z0-9]*",
    hint: "The code of a track, as B. Empty: the project's default.",
  },
  { name: "type", label: "Type", placeholder: "code", hint: "For example code, review or research." },
  {
    name: "priority", label: "Priority", options: TIERS, pattern: "\\d{1,3}|critical|high|normal|low|background",
    placeholder: OF_PROJECT, hint: "From 0 (critical) to 100, or the name of a tier.",
  },
  { name: "tags", label: "Tags", kind: "list", hint: "Separated by spaces." },
  { name: "max_attempts", label: "Attempts at most", kind: "whole", min: 1, placeholder: OF_PROJECT },
  { name: "deadline", label: "Deadline", kind: "time", isMore: true },
  { name: "not_before", label: "Not before", kind: "time", isMore: true },
  {
    name: "touches", label: "Touches", kind: "list", isMore: true,
    hint: "Paths that it changes: tasks that touch the same do not run together.",
  },
  {
    name: "on_lost", label: "If its holder is lost", kind: "choice", options: ON_LOST, isMore: true,
    hint: "What happens when a lease ends without a result.",
  },
  {
    name: "retry", label: "Retries", kind: "json", isMore: true,
    placeholder: '{"strategy": "fixed", "initial_delay": 60}',
    hint: "What differs from the usual: exponential, from 10 s to 300 s.",
  },
  { name: "constraints", label: "Constraints", kind: "json", isMore: true, placeholder: '{"max_duration": 3600}' },
  { name: "spec", label: "Specification", kind: "json", isMore: true },
  { name: "output", label: "Output contract", kind: "json", isMore: true, placeholder: '{"validation": "review"}' },
  { name: "metadata", label: "Metadata", kind: "json", isMore: true },
  { name: "draft", label: "Only a draft: publish it later", kind: "check", isNew: true, isMore: true },
];

function sent(name, value) {
  if (name === "priority") return /^\d+$/.test(value) ? Number(value) : value;
  return value;
}

const isEmpty = (value) => value === "" || value === false || value === null
  || (typeof value === "object" && !Object.keys(value).length);

// The fields of a new task, as a template's too; empty ones are left out.
export function newTask(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => !isEmpty(value))
    .map(([name, value]) => [name, sent(name, value)]));
}

export const fieldsOfNew = (tracks = [], without = []) => FIELDS.filter(({ name }) => !without.includes(name))
  .map((field) => ({
    ...field, ...(field.name === "track" ? { options: tracks } : {}),
    ...(field.name === "on_lost" ? { options: [["", OF_PROJECT], ...ON_LOST] } : {}),
  }));

export async function creating(project) {
  const tracks = await get(path(project, "tracks")).catch(() => ({ items: [] }));
  return {
    title: "New task",
    action: "Create",
    wide: true,
    fields: fieldsOfNew(tracks.items.map((track) => [track.code, track.name])),
    run: async (values) => {
      const task = newTask(values);
      const outcome = await done(project, `Created: ${task.title}`, () => command(path(project, "tasks"), { task }),
        { throws: true });
      const made = outcome.task ?? outcome.tasks?.[0];
      if (made) go(address(project, "tasks", made.key));
    },
  };
}

// The fields of a task that differ from what the form showed at first.
function changesOf(task, fields, values, texts) {
  const changed = fields.filter(({ name, kind }) => texts[name] !== shownIn(kind, task[name]));
  return Object.fromEntries(changed.map(({ name }) => [name, sent(name, values[name])]));
}

const editable = (task) => FIELDS.filter(({ isNew }) => !isNew)
  .map((field) => ({ ...field, value: shownIn(field.kind, task[field.name]) }));

export function editing(project, task) {
  const fields = editable(task);
  const isHeld = HELD.includes(task.state) || task.state === "validating";
  return {
    title: `Edit: ${task.key}`,
    action: "Save",
    wide: true,
    text: isHeld ? "An agent works on it: a new description reaches it with its next report." : null,
    fields: [...fields, ...(isHeld ? [SUPERSEDE] : [])],
    run: ({ supersede = false, ...values }, texts) => {
      const changes = changesOf(task, fields, values, texts);
      if (!Object.keys(changes).length) throw new Error("Nothing has changed.");
      const send = () => command(path(project, "tasks", task.key), { changes, version: task.version, supersede }, "PATCH");
      return done(project, `Saved: ${task.key}`, send, { throws: true });
    },
  };
}

const SUPERSEDE = {
  name: "supersede", kind: "check", value: false,
  label: "End its claim if the change needs that: a result of the old holder is refused",
};

// A dead letter with another text, another limit, and a note for the next attempt.
export function modifying(project, task) {
  const fields = editable(task);
  return {
    title: `Change and retry: ${task.key}`,
    action: "Retry",
    wide: true,
    text: "Starts a new run with all attempts, with what you change here.",
    fields: [{ name: "note", label: "Note for the next attempt", kind: "text" }, ...fields],
    run: ({ note, ...values }, texts) => {
      const changes = changesOf(task, fields, values, texts);
      const asked = { ...(note ? { note } : {}), ...(Object.keys(changes).length ? { changes } : {}) };
      return done(project, `Retried: ${task.key}`, () => command(path(project, "tasks", task.key, "retry"), asked),
        { throws: true });
    },
  };
}

export function NewTask({ project }) {
  const [asked, ask] = useState(null);
  if (!useWriter()) return null;
  return html`<button class="button primary" onClick=${async () => ask(await creating(project))}>
      <${Icon} name="plus" /> New task</button>
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}`;
}
