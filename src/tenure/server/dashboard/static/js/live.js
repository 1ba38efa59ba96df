// The live events of the project. Views subscribe; they refresh at most every GAP, however many events there are.
//
// The stream is read with fetch, not with EventSource, which cannot distinguish an unavailable server from a missing
// sign-in, and needs each kind of event by name. A hidden page closes its stream, since browsers allow only six
// connections to a server for all tabs.
import { Problem, path, readHeaders, signedOut } from "./api.js";
import { Signal } from "./signal.js";
import { tenantHeader } from "./tenant.js";

const GAP = 500; // milliseconds between two refreshes
const MOST_CHANGES = 1000; // more events between two refreshes count as any change
const TICK = 15_000; // leases expire without an event: refresh anyway
const BACKOFF = [500, 1000, 2000, 5000, 10_000];
const SILENCE = 40_000; // the server sends heartbeats more often than that

export const connection = new Signal("starting"); // starting, live, offline
const watchers = new Set(); // called with each event
const readers = new Set(); // called after changes with their events (null: any), and whether one was made here

let project = null;
let last = null; // the id of the last event
let running = null; // the stream's AbortController
let failures = 0;
let waiting = null;
let timer = null;
let refreshedAt = 0;
let changes = []; // events since the last refresh, or null
let isOurs = false; // whether this page has made one of them

export function follow(name) {
  if (name === project) return;
  project = name;
  last = null;
  failures = 0;
  connection.set("starting");
  restart();
}

export function onEvent(watcher) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function onChange(reader) {
  readers.add(reader);
  return () => readers.delete(reader);
}

// A change that the reader has made here: it is shown without the pauses that spare the server.
export function acted() {
  isOurs = true;
  changed();
}

// Call the readers, at most every GAP.
export function changed(event = null) {
  if (event === null || changes?.length === MOST_CHANGES) changes = null;
  changes?.push(event);
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = null;
    refreshedAt = performance.now();
    const [events, ours] = [changes, isOurs];
    changes = document.hidden ? null : [];
    isOurs = false;
    if (!document.hidden) for (const reader of [...readers]) reader(events, ours);
  }, Math.max(0, GAP - (performance.now() - refreshedAt)));
}

function restart() {
  clearTimeout(timer);
  running?.abort();
  running = null;
  if (project && !document.hidden && !signedOut.value) read(project);
}

async function read(name) {
  const ours = (running = new AbortController());
  let watch = null;
  const alive = () => {
    clearTimeout(watch);
    watch = setTimeout(() => ours.abort(), SILENCE);
  };
  try {
    alive();
    const headers = { Accept: "text/event-stream", ...tenantHeader(), ...(last ? { "Last-Event-ID": last } : {}) };
    const url = `/api/v1${path(name, "events")}?store=true`; // with events of sinks, for those who may see them
    const response = await fetch(url, { headers, signal: ours.signal, credentials: "same-origin", cache: "no-store" });
    readHeaders(response);
    if (!response.ok || !response.body) throw new Problem({ status: response.status });
    if (connection.value !== "live") changed(); // events were missed
    connection.set("live");
    failures = 0;
    for await (const event of events(response.body, alive)) {
      if (event.id) last = event.id;
      if (event.data) publish(event.data);
    }
    again(ours, 200); // the server closed the stream: it was too slow, or the server shuts down
  } catch {
    again(ours, BACKOFF[Math.min(failures++, BACKOFF.length - 1)]);
  } finally {
    clearTimeout(watch);
  }
}

function again(ours, pause) {
  if (running !== ours) return; // another stream has taken over
  running = null;
  if (failures) connection.set("offline");
  timer = setTimeout(restart, pause);
}

function publish(data) {
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return;
  }
  if (!event.kind) return;
  for (const watcher of [...watchers]) watcher(event);
  changed(event);
}

// Parses server-sent events.
async function* events(stream, alive) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  let event = { id: "", data: "" };
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    alive();
    buffer += value;
    const lines = buffer.split(/\r\n|\n|\r/);
    buffer = lines.pop();
    for (const line of lines) {
      if (line === "") {
        if (event.data) yield event;
        event = { id: "", data: "" };
        continue;
      }
      const [, field, text] = /^([^:]*):? ?(.*)$/s.exec(line);
      if (field === "id") event.id = text;
      if (field === "data") event.data += event.data ? `\n${text}` : text;
    }
  }
}

document.addEventListener("visibilitychange", () => {
  restart();
  if (!document.hidden) changed();
});
addEventListener("online", restart);
signedOut.listen((out) => {
  if (!out) restart();
});
setInterval(() => changed(), TICK);
