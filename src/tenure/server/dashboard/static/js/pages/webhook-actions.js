// The actions of an admin on webhooks, as dialogs; see Ask in parts/dialogs.js.
import { command, path } from "../api.js";
import { html, useEffect } from "../html.js";
import { onEvent } from "../live.js";
import { done } from "../parts/toasts.js";
import { go, address } from "../router.js";

const SOON = 1500; // milliseconds that a delivery takes, as a rule

// Deliveries follow events but are not events: look once more a moment after the last one.
export function useAfterEvents(reload) {
  useEffect(() => {
    let timer = null;
    const stop = onEvent(() => {
      clearTimeout(timer);
      timer = setTimeout(reload, SOON);
    });
    return () => {
      stop();
      clearTimeout(timer);
    };
  }, []);
}

// Nothing on webhooks can be undone. `throws`: the dialog shows the error and stays open.
const doing = (message, run, throws = false) => done(null, message, run, { canUndo: false, throws });
const send = (project, name, verb, fields) => command(path(project, "webhooks", name, verb), fields);

export const replay = (project, name, message) =>
  doing("Sending again", () => send(project, name, "replay", { message }));

const words = (text) => text.split(/[\s,]+/).filter(Boolean);

function filterOf(text) {
  if (!text.trim()) return {};
  let value = null;
  try {
    value = JSON.parse(text);
  } catch {
    // explained below
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new Error('The filter must be a JSON object, as in {"task.type": "review"}.');
  }
  return value;
}

const secretField = (hint) => ({ name: "secret", label: "Secret (optional)", kind: "password", hint });
const OWN = "Begins with whsec_. Leave it empty to get a new one.";

// Creates a webhook, or changes the one that is given.
export function setting(project, webhook, show) {
  const run = async ({ name = webhook?.name, url, kinds, where, secret }) => {
    const fields = { url: url.trim(), kinds: words(kinds), where: filterOf(where) };
    if (secret) fields.secret = secret;
    const put = () => command(path(project, "webhooks", name.trim()), fields, "PUT");
    reveal(await doing(`${webhook ? "Changed" : "Created"}: ${name.trim()}`, put, true), show);
  };
  return {
    title: webhook ? `Edit: ${webhook.name}` : "New webhook",
    action: webhook ? "Save" : "Create",
    text: "Events are sent to the URL as signed POST requests.",
    fields: [
      !webhook && { name: "name", label: "Name", required: true },
      { name: "url", label: "URL", kind: "url", required: true, value: webhook?.url, hint: "It must begin with https." },
      {
        name: "kinds", label: "Kinds of events", required: true,
        value: webhook?.kinds.join(" ") ?? "task.status_changed",
        hint: "Kinds or patterns, separated by spaces: task.completed, task.*, task.status_changed.",
      },
      {
        name: "where", label: "Filter (optional)", value: described(webhook?.filter),
        hint: 'A JSON object of paths and required values: {"task.type": "review"}.',
      },
      !webhook && secretField(OWN),
    ].filter(Boolean),
    run,
  };
}

const described = (filter) => (filter && Object.keys(filter).length ? JSON.stringify(filter) : "");

function rotating(project, webhook, show) {
  const run = async ({ hours, secret }) => {
    const fields = { grace: Number(hours) * 3600, ...(secret ? { secret } : {}) };
    const rotate = () => send(project, webhook.name, "rotate", fields);
    reveal(await doing(`New secret: ${webhook.name}`, rotate, true), show);
  };
  return {
    title: `New secret: ${webhook.name}`,
    action: "Rotate",
    text: "Until the old secret ends, deliveries are signed with both.",
    fields: [
      {
        name: "hours", label: "Hours until the old secret ends", kind: "number", min: 0, step: "any", required: true,
        value: "24",
      },
      secretField(OWN),
    ],
    run,
  };
}

// The only time that the secret is shown.
function reveal(outcome, show) {
  if (outcome.secret) show({ name: outcome.webhook.name, secret: outcome.secret, hint: outcome.hint });
}

const isSince = ({ which }) => which === "since";

export function replaying(project, webhook) {
  const run = ({ since }) => doing("Sending again", () => send(project, webhook.name, "replay", since === undefined
    ? {} : { since: new Date(since).toISOString() }), true);
  return {
    title: `Replay: ${webhook.name}`,
    action: "Replay",
    text: "Deliveries are sent again, with the same message ids.",
    fields: [
      {
        name: "which", label: "What", kind: "choice", value: "failed",
        options: [["failed", "failed deliveries"], ["since", "all events since a time"]],
      },
      { name: "since", label: "Time", kind: "datetime-local", required: true, when: isSince },
    ],
    run,
  };
}

function pausing(project, webhook) {
  return {
    title: `Pause: ${webhook.name}`,
    action: "Pause",
    text: "Nothing is sent until you resume it; its deliveries are kept.",
    fields: [{ name: "reason", label: "Reason (optional)" }],
    run: ({ reason }) => doing(`Paused: ${webhook.name}`, () => send(project, webhook.name, "pause", { reason }), true),
  };
}

function removing(project, webhook) {
  return {
    title: `Remove: ${webhook.name}`,
    action: "Remove",
    danger: true,
    text: "Its secret and its delivery log are deleted; parked deliveries are not sent.",
    run: async () => {
      await doing(`Removed: ${webhook.name}`, () => send(project, webhook.name, "remove"), true);
      go(address(project, "delivery"));
    },
  };
}

export function Verbs({ project, webhook, ask, show }) {
  const { name } = webhook;
  const resume = () => doing(`Resumed: ${name}`, () => send(project, name, "resume"));
  const test = () => doing(`Test message on its way: ${name}`, () => send(project, name, "test"));
  const canResume = !webhook.enabled || webhook.down_since;
  return html`
    <button class="button small" onClick=${test}>Test</button>
    ${canResume && html`<button class="button small" onClick=${resume}>Resume</button>`}
    ${webhook.enabled && html`
      <button class="button small" onClick=${() => ask(pausing(project, webhook))}>Pause</button>`}
    <button class="button small" onClick=${() => ask(setting(project, webhook, show))}>Edit</button>
    <button class="button small" onClick=${() => ask(rotating(project, webhook, show))}>New secret</button>
    <button class="button small danger-text" onClick=${() => ask(removing(project, webhook))}>Remove</button>`;
}
