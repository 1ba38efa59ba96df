// News of the project, as it happens. Views ask to be told; they are told at most every GAP, however much happens.
//
// The stream is read with fetch and not with EventSource: that one cannot tell a server that is away from one that
// wants a login, and needs every kind of event by name. A hidden page lets its stream go, since browsers have only
// six connections to a server for all their tabs.
import { Problem, heed, path, signedOut } from "./api.js";
import { Signal } from "./signal.js";

const GAP = 500; // milliseconds between two refreshes
const TICK = 15_000; // leases end by the clock alone: look again, though nobody has written
const BACKOFF = [500, 1000, 2000, 5000, 10_000];
const SILENCE = 40_000; // the server sends a sign of life more often than that

export const connection = new Signal("starting"); // starting, live, away
const watchers = new Set(); // told of each event
const readers = new Set(); // told that something has changed

let project = null;
let last = null; // the id of the last event
let running = null; // the stream's AbortController
let failures = 0;
let waiting = null;
let timer = null;
let toldAt = 0;

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

// Tell the readers now, or when the last time is long enough ago.
export function changed() {
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = null;
    toldAt = performance.now();
    if (!document.hidden) for (const reader of [...readers]) reader();
  }, Math.max(0, GAP - (performance.now() - toldAt)));
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
    const headers = { Accept: "text/event-stream", ...(last ? { "Last-Event-ID": last } : {}) };
    const url = `/api/v1${path(name, "events")}`;
    const response = await fetch(url, { headers, signal: ours.signal, credentials: "same-origin", cache: "no-store" });
    heed(response);
    if (!response.ok || !response.body) throw new Problem({ status: response.status });
    if (connection.value !== "live") changed(); // what happened meanwhile
    connection.set("live");
    failures = 0;
    for await (const event of events(response.body, alive)) {
      if (event.id) last = event.id;
      if (event.data) tell(event.data);
    }
    again(ours, 200); // the server closed it: it has more to tell, or goes away
  } catch {
    again(ours, BACKOFF[Math.min(failures++, BACKOFF.length - 1)]);
  } finally {
    clearTimeout(watch);
  }
}

function again(ours, pause) {
  if (running !== ours) return; // another stream has taken over
  running = null;
  if (failures) connection.set("away");
  timer = setTimeout(restart, pause);
}

function tell(data) {
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return;
  }
  if (!event.kind) return;
  for (const watcher of [...watchers]) watcher(event);
  changed();
}

// The events of a stream of bytes, as the standard has them.
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
setInterval(changed, TICK);
