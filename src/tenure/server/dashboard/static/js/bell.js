// Notices: events that need a person, counted since the user last looked. This browser keeps how far.
import { path } from "./api.js";
import { html, useEffect, useMemo, useState } from "./html.js";
import { connection, onEvent } from "./live.js";
import { Dialog } from "./parts/dialogs.js";
import { Icon } from "./parts/icons.js";
import { Empty } from "./parts/notices.js";
import { useQuery } from "./query.js";
import { address } from "./router.js";
import { bind } from "./shortcuts.js";
import { Signal, useSignal } from "./signal.js";
import { ofProject, store, stored } from "./storage.js";
import { Time } from "./time.js";

// Kinds of events that may be a notice; the server marks those that are.
const KINDS = [
  "task.dead_lettered", "task.question", "task.validating", "task.paused", "task.process_gone", "webhook.disabled",
  "sink.behind",
];
const MOST = 100; // shown
const looking = new Signal(false);

export function Bell({ project }) {
  const notices = useNotices(project);
  const [seen, look] = useState(() => readSeen(project));
  const isOpen = useSignal(looking);
  const fresh = notices.filter((one) => isNew(one, seen));
  const label = fresh.length ? `Notices: ${fresh.length} new` : "Notices";
  useEffect(() => bind({ n: { run: () => looking.set(true), says: "show notices" } }), []);
  function close() {
    looking.set(false);
    const next = Math.max(seen, ...notices.map((one) => one.sequence));
    store(ofProject("seen", project), JSON.stringify({ sequence: next }));
    look(next);
  }
  return html`
    <button class="button ghost bell" aria-label=${label} title=${`${label} (n)`} onClick=${() => looking.set(true)}>
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
  const asked = { kind: KINDS, limit: MOST, store: true };
  const log = useQuery(path(project, "events"), asked, { pause: 1000, follows: `${state} ${last}` });
  return useMemo(() => {
    const events = (log.data?.items ?? []).filter((event) => event.notice).map((event) => eventNotice(project, event));
    return events.reverse();
  }, [log.data]);
}

function eventNotice(project, event) {
  const { sequence, time, text, notice, key, details } = event;
  const href = details?.webhook ? address(project, "delivery", details.webhook)
    : details?.sink ? address(project, "delivery")
    : key ? address(project, "tasks", key) : address(project, "agents");
  return { id: `event ${sequence}`, sequence, at: time, text, kind: notice, href };
}

// The sequence of the newest event that the user has seen.
function readSeen(project) {
  try {
    return Number(JSON.parse(stored(ofProject("seen", project), "{}")).sequence) || 0;
  } catch {
    return 0;
  }
}

const isNew = ({ sequence }, seen) => sequence > seen;

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
