// The live list of events. It can be paused.
import { get, path } from "../api.js";
import { html, useEffect, useRef, useState } from "../html.js";
import { onEvent } from "../live.js";
import { Choice, TextFilter } from "../parts/filters.js";
import { Icon } from "../parts/icons.js";
import { Empty, Failure, Loading } from "../parts/notices.js";
import { Value } from "../parts/values.js";
import { TaskLink, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { toneOf } from "../tones.js";
import { number, timeOfDay } from "../format.js";

const MOST = 500; // shown at once
const FIRST = 200; // asked for at the beginning
const RANKS = ["debug", "info", "warning", "error", "critical"];
const LEVELS = [["", "All levels"], ...RANKS.slice(1).map((level) => [level, `${level} and above`])];
const NOUNS = [
  ["", "Everything"], ["task", "Tasks"], ["agent", "Agents"], ["dag", "Dags"], ["message", "Messages"],
  ["budget", "Budgets"], ["schedule", "Schedules"], ["trigger", "Triggers"], ["webhook", "Webhooks"],
  ["leader", "Leaders"], ["sink", "Sinks"], ["pool", "Pools"], ["member", "Members"], ["key", "Keys"], ["tenant", "Tenants"],
  ["project", "Project"],
];

export function Events({ project }) {
  const { query } = useRoute();
  const [noun, level, agent, text] = ["noun", "level", "agent", "text"].map((name) => query.get(name) ?? "");
  const [events, setEvents] = useState(null);
  const [error, setError] = useState(null);
  const [isHeld, hold] = useState(false);
  const missed = useRef([]); // while it is paused

  useEffect(() => {
    let isOver = false;
    const asked = { limit: FIRST, level, agent, kind: noun, store: true };
    setEvents(null);
    get(path(project, "events"), asked).then(
      ({ items }) => !isOver && setEvents(items.reverse()),
      (problem) => !isOver && setError(problem),
    );
    return () => {
      isOver = true;
    };
  }, [project, noun, level, agent]);

  useEffect(() => onEvent((event) => {
    if (!fits(event, { noun, level, agent })) return;
    if (isHeld) missed.current.push(event);
    else setEvents((before) => before && merged([event], before));
  }), [isHeld, noun, level, agent]);

  function release() {
    const newer = missed.current.splice(0).reverse();
    setEvents((before) => merged(newer, before ?? []));
    hold(false);
  }

  return html`
    <header class="page-head">
      <h1>Events</h1>
      <button class="button" aria-pressed=${isHeld} onClick=${() => (isHeld ? release() : hold(true))}>
        <${Icon} name=${isHeld ? "play" : "pause"} /> ${isHeld ? "Resume" : "Pause"}
      </button>
    </header>
    <div class="filters">
      <${Choice} label="About" value=${noun} options=${NOUNS} onChange=${(value) => filter({ noun: value })} />
      <${Choice} label="Level" value=${level} options=${LEVELS} onChange=${(value) => filter({ level: value })} />
      <${TextFilter} label="Agent" value=${agent} onChange=${(value) => filter({ agent: value })} />
      <${TextFilter} label="Text" value=${text} placeholder="key, kind, text"
        onChange=${(value) => filter({ text: value })} />
    </div>
    ${isHeld && html`<div class="banner">Paused. New events are shown after you resume.</div>`}
    ${error && !events
      ? html`<${Failure} error=${error} />`
      : html`<${Lines} project=${project} events=${events} text=${text}
          isFiltered=${Boolean(noun || level || agent || text)} />`}`;
}

function merged(newer, older) {
  const last = older.length ? older[0].sequence : 0;
  return [...newer.filter((event) => event.sequence > last), ...older].slice(0, MOST);
}

function fits(event, { noun, level, agent }) {
  if (noun && !event.kind.startsWith(`${noun}.`)) return false;
  if (level && RANKS.indexOf(event.level ?? "info") < RANKS.indexOf(level)) return false;
  return !agent || event.agent === agent;
}

function says(event, text) {
  const searched = `${event.kind} ${event.key ?? ""} ${event.text} ${event.user ?? ""}`;
  return searched.toLowerCase().includes(text.toLowerCase());
}

function Lines({ project, events, text, isFiltered }) {
  if (events === null) return html`<${Loading} lines=${10} what="Loading the events" />`;
  const shown = text ? events.filter((event) => says(event, text)) : events;
  if (!shown.length) {
    return html`<${Empty} title="No events">
      ${isFiltered ? "No event matches these filters." : "Events of this project appear here immediately."}
    <//>`;
  }
  return html`
    <ol class="events panel flush">
      ${shown.map((event) => html`<${Line} key=${event.sequence} project=${project} event=${event} />`)}
    </ol>
    <p class="note">The last ${number(shown.length)} events.</p>`;
}

// The sentence, with `link` in place of the task's key.
function linked({ text, key }, link) {
  const at = key ? text.indexOf(key) : -1;
  return at < 0 ? text : [text.slice(0, at), link(), text.slice(at + key.length)];
}

// One event as a line with details. On the page of its task the text says "it".
export function Line({ project, event, withTask = true }) {
  const [isOpen, open] = useState(false);
  const link = () => (withTask ? html`<${TaskLink} project=${project} task=${event.key} class="mono" />` : "it");
  return html`<li class=${`event ${toneOf(event.kind)}`}>
    <div class="event-line">
      <span class="event-time" title=${event.time}>${timeOfDay(event.time)}</span>
      <i class="dot" aria-hidden="true"></i>
      <span class="event-text text">${linked(event, link)}</span>
      <span class="event-kind mono">${event.kind}</span>
      <button class="button ghost small" aria-expanded=${isOpen} aria-label=${`Details of event ${event.sequence}`}
        onClick=${() => open(!isOpen)}><${Icon} name=${isOpen ? "down" : "right"} /></button>
    </div>
    ${isOpen && html`<div class="event-more">
      <p class="faint"><${Time} at=${event.time} />, event ${event.sequence}</p>
      <${Value} value=${event} />
    </div>`}
  </li>`;
}
