// Notices: events that need a person, counted since the user last looked. This browser keeps how far.
import { path } from "./api.js";
import { html, useEffect, useMemo, useState } from "./html.js";
import { connection, onEvent } from "./live.js";
import { useOfAllProjects } from "./me.js";
import { Dialog } from "./parts/dialogs.js";
import { Icon } from "./parts/icons.js";
import { Empty } from "./parts/notices.js";
import { useQuery } from "./query.js";
import { address } from "./router.js";
import { bind } from "./shortcuts.js";
import { Signal, useSignal } from "./signal.js";
import { store, stored } from "./storage.js";
import { Time } from "./time.js";

// Kinds of events that may be a notice; the server marks those that are. Sinks have none in the log of a project.
const KINDS = [
  "task.dead_lettered", "task.question", "task.validating", "task.paused", "task.process_gone", "webhook.disabled",
];
const MOST = 100; // shown
const looking = new Signal(false);

export function Bell({ project }) {
  const notices = useNotices(project);
  const [seen, look] = useState(() => readSeen(project));
  const isOpen = useSignal(looking);
  const fresh = notices.filter((one) => isNew(one, seen));
  const said = fresh.length ? `Notices: ${fresh.length} new` : "Notices";
  useEffect(() => bind({ n: { run: () => looking.set(true), says: "show notices" } }), []);
  function close() {
    looking.set(false);
    const next = seenAll(notices, seen);
    store(`seen.${project}`, JSON.stringify(next));
    look(next);
  }
  return html`
    <button class="button ghost bell" aria-label=${said} title=${`${said} (n)`} onClick=${() => looking.set(true)}>
      <${Icon} name="bell" />${fresh.length > 0 && html`<span class="badge bad">${brief(fresh.length)}</span>`}
    </button>
    ${isOpen && html`<${List} project=${project} notices=${notices} seen=${seen} close=${close} />`}`;
}

const brief = (count) => (count >= MOST ? `${MOST - 1}+` : count);

// The newest first. Asked for at the beginning, after a lost connection, and after an event that is a notice.
function useNotices(project) {
  const state = useSignal(connection);
  const [last, setLast] = useState(0);
  useEffect(() => onEvent((event) => event.notice && setLast(event.sequence)), []);
  const asked = { kind: KINDS, limit: MOST };
  const log = useQuery(path(project, "events"), asked, { pause: 1000, follows: `${state} ${last}` });
  const sinks = useQuery(useOfAllProjects() && "/relays", {}, { pause: 10_000 });
  return useMemo(() => {
    const events = (log.data?.items ?? []).filter((event) => event.notice).map((event) => eventNotice(project, event));
    const cut = (sinks.data?.items ?? []).filter((sink) => sink.cut_off_at).map((sink) => sinkNotice(project, sink));
    return [...events, ...cut].sort((one, other) => Date.parse(other.at) - Date.parse(one.at));
  }, [log.data, sinks.data]);
}

function eventNotice(project, event) {
  const { sequence, time, text, notice, key, details } = event;
  const href = details?.webhook ? address(project, "delivery", details.webhook)
    : key ? address(project, "tasks", key) : address(project, "agents");
  return { id: `event ${sequence}`, sequence, at: time, text, kind: notice, href };
}

function sinkNotice(project, sink) {
  const text = `sink ${sink.name} is too far behind and is cut off`;
  const id = `${sink.name} ${sink.cut_off_at}`;
  return { id, at: sink.cut_off_at, text, kind: "sink behind", href: address(project, "delivery") };
}

// { sequence: of the newest event, sinks: ids of their notices }
function readSeen(project) {
  try {
    const { sequence, sinks } = JSON.parse(stored(`seen.${project}`, "{}"));
    return { sequence: Number(sequence) || 0, sinks: Array.isArray(sinks) ? sinks : [] };
  } catch {
    return { sequence: 0, sinks: [] };
  }
}

const isNew = ({ id, sequence }, seen) => (sequence ? sequence > seen.sequence : !seen.sinks.includes(id));

function seenAll(notices, seen) {
  const sequence = Math.max(seen.sequence, ...notices.map((one) => one.sequence ?? 0));
  return { sequence, sinks: notices.filter((one) => !one.sequence).map((one) => one.id) };
}

function List({ project, notices, seen, close }) {
  return html`<${Dialog} title="Notices" close=${close}>
    ${notices.length
      ? html`<ul class="notices-list">${notices.map((one) => html`
          <li key=${one.id} class=${isNew(one, seen) ? "new" : ""}>
            <a href=${one.href} onClick=${close}>
              <span class="notice-head"><span class="tag">${one.kind}</span>
                ${isNew(one, seen) && html`<span class="tag odd">new</span>`}
                <span class="spacer"></span><span class="faint"><${Time} at=${one.at} /></span></span>
              <span class="text">${one.text}</span>
            </a>
          </li>`)}</ul>`
      : html`<${Empty} title="No notices">
          Tasks, agents and webhooks of ${project} that need a person appear here.
        <//>`}
    <div class="dialog-buttons"><button class="button primary" autofocus onClick=${close}>Close</button></div>
  <//>`;
}
