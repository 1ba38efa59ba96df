// Sinks: state, place in the log, lag, errors; and the actions of admins.
import { command } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { done } from "../parts/toasts.js";
import { Time } from "../time.js";
import { counted, lasting, number } from "../format.js";

const TONES = { "up to date": "good", behind: "odd", failing: "bad", paused: "", "cut off": "bad" };
const WEBHOOKS = "webhooks";
// Readers of the log that the server itself has: title, and what they read it for.
const READERS = {
  [WEBHOOKS]: ["All webhooks", "Reads the log for the webhooks of all projects."],
  hooks: ["Hooks", "Reads the log for the commands of the setting [hooks]."],
  notices: ["Notices", "Reads the log for notices to people."],
};

export function Sinks({ ask }) {
  const sinks = useQuery("/relays", {}, { pause: 1000 });
  return html`<section aria-labelledby="sinks">
    <h2 id="sinks" class="section-head">Sinks <span class="faint">of all projects</span></h2>
    <${Loaded} of=${sinks} lines=${3} what="Loading the sinks">${({ items }) => items.length
      ? html`<ul class="cards sources">${items.map((one) => html`<${Sink} key=${one.name} sink=${one} ask=${ask} />`)}</ul>`
      : html`<${Empty} title="No sinks yet">
          <p>A sink receives every event, such as a message broker. Add it to the settings of the server:</p>
          <pre class="terminal" tabindex="0">${'[sinks.broker]\nurl = "nats://localhost:4222"'}</pre>
        <//>`}<//>
  </section>`;
}

const titleOf = (sink) => READERS[sink.name]?.[0] ?? sink.name;

function Sink({ sink, ask }) {
  return html`<li class="card source" data-name=${sink.name}>
    <div class="card-head">
      <span class="card-title text">${titleOf(sink)}</span>
      <span class="dot-label"><i class=${`dot ${TONES[sink.state] ?? ""}`}></i>${sink.state}</span>
    </div>
    ${READERS[sink.name] && html`<p class="quiet">${READERS[sink.name][1]}</p>`}
    ${sink.name !== WEBHOOKS && html`<p class="quiet mono text">${sink.url}</p>`}
    <${Facts} of=${[
      ["Lag", `${lasting(sink.lag)} of at most ${lasting(sink.max_lag)}`],
      sink.lag_events > 0 && ["Behind by", counted(sink.lag_events, "event")],
      ["Place in the log", `after event ${number(sink.sequence)}`],
      sink.name !== WEBHOOKS && ["Sent", html`${counted(sink.sent, "message")}${sink.sent_at && html`
        <span class="faint">, last <${Time} at=${sink.sent_at} /></span>`}`],
      ["Projects", sink.projects.join(", ") || "all"],
      sink.paused_at && ["Paused", html`<${Time} at=${sink.paused_at} />${sink.paused_by && ` by ${sink.paused_by}`}`],
      sink.cut_off_at && ["Cut off", html`<${Time} at=${sink.cut_off_at} />`],
    ]} />
    ${sink.error && html`<p class="problem text">${sink.error}
      ${sink.error_at && html` <span class="faint"><${Time} at=${sink.error_at} /></span>`}</p>`}
    ${ask && html`<${Verbs} sink=${sink} ask=${ask} />`}
  </li>`;
}

const send = (sink, verb, fields) => command(`/relays/${encodeURIComponent(sink.name)}/${verb}`, fields);
const doing = (sink, verb, message) => done(null, `${message}: ${titleOf(sink)}`, () => send(sink, verb), { canUndo: false });

function Verbs({ sink, ask }) {
  const confirming = (verb, action, message, text, more = {}) => ({
    title: `${action}: ${titleOf(sink)}`, action, text, run: () => doing(sink, verb, message), ...more,
  });
  const pausing = confirming("pause", "Pause", "Paused", sink.name === WEBHOOKS
    ? `No webhook of any project gets events until you resume. They are kept for ${lasting(sink.max_lag)}.`
    : `It gets no events until you resume it. They are kept for ${lasting(sink.max_lag)}; then it is cut off.`);
  const resuming = confirming("resume", "Resume", "Resumed", "It gets the events since it was paused.");
  const removing = confirming("remove", "Remove", "Removed",
    "Its place in the log is forgotten, and events are no longer kept for it. If the settings still have it, it starts " +
    "again at the end of the log.", { danger: true });
  return html`<div class="card-actions">
    ${sink.paused_at
      ? html`<button class="button small" onClick=${() => ask(resuming)}>Resume</button>`
      : html`<button class="button small" onClick=${() => ask(pausing)}>Pause</button>`}
    <button class="button small" onClick=${() => ask(rewinding(sink))}>Rewind</button>
    ${sink.name !== WEBHOOKS && html`
      <button class="button small danger-text" onClick=${() => ask(removing)}>Remove</button>`}
  </div>`;
}

const isBySequence = ({ by }) => by === "sequence";
const WAYS = [["time", "from a time on"], ["sequence", "after an event"]];

function rewinding(sink) {
  const run = async ({ to, since }) => {
    const place = to === undefined ? { since: new Date(since).toISOString() } : { to: Number(to) };
    await done(null, `Rewound: ${titleOf(sink)}`, () => send(sink, "rewind", place), { canUndo: false, throws: true });
  };
  return {
    title: `Rewind: ${titleOf(sink)}`,
    action: "Rewind",
    danger: true,
    text: "Events are sent again, with the same message ids.",
    fields: [
      { name: "by", label: "Send again", kind: "choice", options: WAYS, value: "time" },
      { name: "since", label: "Time", kind: "datetime-local", required: true, when: (values) => !isBySequence(values) },
      {
        name: "to", label: "Sequence of the event before the first", kind: "number", min: 0, required: true,
        value: String(sink.sequence), when: isBySequence,
      },
    ],
    run,
  };
}
