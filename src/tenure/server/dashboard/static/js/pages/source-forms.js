// The forms of schedules and triggers: create, or replace. See Ask in parts/dialogs.js.
import { command, get, path } from "../api.js";
import { shownIn } from "../parts/fields.js";
import { done } from "../parts/toasts.js";
import { fieldsOfNew, newTask } from "./task-form.js";

const MISFIRES = [["once", "run the last one later"], ["skip", "skip them"], ["all", "run all of them later"]];
const SIGNATURES = [["standard", "Standard Webhooks"], ["github", "GitHub"]];
const KINDS = [
  "task.dead_lettered", "task.completed", "task.failed", "task.created", "task.paused", "task.question", "dag.completed",
  "dag.failed", "agent.died", "budget.alert", "webhook",
];
const NOT_IN_TEMPLATES = ["depends_on", "deadline", "not_before", "draft"];

// One task is filled in field by field; a template of several, or with other fields, is edited as JSON.
function templateFields(template) {
  const [task, ...others] = template?.tasks ?? [{}];
  const known = fieldsOfNew([], NOT_IN_TEMPLATES).map((field) => ({ ...field, says: [`template.tasks.${field.name}`] }));
  const names = known.map(({ name }) => name);
  const isSimple = !others.length && !template?.title && !template?.deadline_in
    && Object.keys(task).every((name) => names.includes(name));
  if (!isSimple) {
    return [{
      name: "template", label: "Template", kind: "json", rows: 14, value: shownIn("json", template), required: true,
      hint: "Tasks with placeholders such as {event.key}; several become a dag.",
    }];
  }
  return known.map((field) => ({
    ...field, label: field.name === "title" ? "Title of its task" : field.label,
    value: task[field.name] === undefined ? field.value : shownIn(field.kind, task[field.name]),
  }));
}

const templateOf = ({ template, ...task }) => template ?? { tasks: [newTask(task)] };

async function whole(project, noun, source) {
  return source ? get(path(project, noun, source.name)) : null;
}

const put = (project, noun, name, source, fields) =>
  done(project, `${source ? "Changed" : "Created"}: ${name}`, () => command(path(project, noun, name), fields, "PUT"),
    { canUndo: false, throws: true });

const NAME = { name: "name", label: "Name", required: true, says: ["schedule", "trigger"], hint: "For example nightly." };

export async function schedule(project, listed = null) {
  const source = await whole(project, "schedules", listed);
  return {
    title: source ? `Edit: ${source.name}` : "New schedule",
    action: source ? "Save" : "Create",
    wide: true,
    text: "Creates its tasks at the times of a cron expression.",
    fields: [
      !source && NAME,
      {
        name: "cron", label: "When", required: true, value: source?.cron ?? "0 3 * * *",
        hint: "Minute, hour, day of the month, month, day of the week: 0 3 * * * is every night at three.",
      },
      {
        name: "zone", label: "Time zone", required: true,
        value: source?.zone ?? (Intl.DateTimeFormat().resolvedOptions().timeZone || "UTC"),
      },
      { name: "misfire", label: "Missed runs", kind: "choice", options: MISFIRES, value: source?.misfire ?? "once" },
      ...templateFields(source?.template),
    ].filter(Boolean),
    run: ({ name = source?.name, cron, zone, misfire, ...task }) =>
      put(project, "schedules", name.trim(), source, { cron, zone, misfire, template: templateOf(task) }),
  };
}

// `reveal`: called with the secret of a new webhook, which is shown once.
export async function trigger(project, listed = null, reveal = () => {}) {
  const source = await whole(project, "triggers", listed);
  const isWebhook = ({ on }) => on === "webhook";
  return {
    title: source ? `Edit: ${source.name}` : "New trigger",
    action: source ? "Save" : "Create",
    wide: true,
    text: "Creates its tasks after each event that fits, or after a signed delivery of a webhook.",
    fields: [
      !source && NAME,
      {
        name: "on", label: "After", required: true, value: source?.on ?? "task.dead_lettered", options: KINDS,
        hint: "A kind of event, a pattern such as task.*, or webhook.",
      },
      {
        name: "where", label: "Only where", kind: "json", value: shownIn("json", source?.filter ?? {}), says: ["filter"],
        hint: 'A JSON object of paths and required values: {"event.track": "B"}.',
      },
      { name: "most", label: "At most per hour", kind: "whole", min: 1, value: String(source?.most ?? 100), required: true },
      {
        name: "signature", label: "Signature", kind: "choice", options: SIGNATURES, when: isWebhook,
        value: source?.signature ?? "standard",
      },
      !source && {
        name: "secret", label: "Secret (optional)", kind: "password", when: isWebhook,
        hint: "The sender's own. Leave it empty to get a new one.",
      },
      ...templateFields(source?.template),
    ].filter(Boolean),
    run: async ({ name = source?.name, on, where, most, signature, secret, ...task }) => {
      const fields = { on, where, most, template: templateOf(task) };
      if (signature) fields.signature = signature;
      if (secret) fields.secret = secret;
      const outcome = await put(project, "triggers", name.trim(), source, fields);
      if (outcome.secret) reveal({ name: name.trim(), secret: outcome.secret });
    },
  };
}
