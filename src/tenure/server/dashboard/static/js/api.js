// Requests to the server: queries, commands, and their errors.
import { stored } from "./storage.js";
import { Signal } from "./signal.js";
import { base, forgetTenant, isUnknown, tenantHeader } from "./tenant.js";

const ROOT = "/api/v1";
export const PUBLIC_ROOT = `${base}${ROOT}`; // of links, which send no headers

export const signedOut = new Signal(false);
export const me = new Signal(null); // the current principal; see me.js
export const skew = new Signal(0); // milliseconds that the server's clock is ahead of the browser's

// A failed request. `status` 0: the server was not reached.
export class Problem extends Error {
  constructor({ status, code = "", detail = "", hint = null }) {
    super(detail || code || `the server answered ${status}`);
    Object.assign(this, { status, code, hint });
  }

  get isUnavailable() {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

export function path(project, ...parts) {
  return ["/projects", project, ...parts].map((part, index) => (index ? encodeURIComponent(part) : part)).join("/");
}

function search(params) {
  const pairs = new URLSearchParams();
  for (const [name, value] of Object.entries(params ?? {})) {
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") pairs.append(name, one);
  }
  return pairs.size ? `?${pairs}` : "";
}

// The user's name, for the log. With a key the server uses the name of the key.
export function speaker() {
  const name = stored("name", "").trim();
  if (!name || me.value?.key) return {};
  // A header has one byte per character; the server reads them as UTF-8.
  return { "Tenure-User": String.fromCharCode(...new TextEncoder().encode(name)) };
}

async function send(url, { isAnywhere = false, ...options }) {
  let response;
  try {
    const headers = { ...(isAnywhere ? {} : tenantHeader()), ...options.headers };
    response = await fetch(url, { credentials: "same-origin", ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Problem({ status: 0, code: "OFFLINE", detail: "Cannot reach the server." });
  }
  readHeaders(response);
  return response;
}

// Read the clock and the sign-in state from a response.
export function readHeaders(response) {
  const date = Date.parse(response.headers.get("Date") ?? "");
  if (date && Math.abs(date - Date.now() - skew.value) > 2500) skew.set(date - Date.now());
  if (response.status === 401) signedOut.set(true);
}

async function body(response) {
  const type = response.headers.get("Content-Type") ?? "";
  if (!type.includes("json")) return { code: "", detail: response.ok ? "" : (await response.text()).slice(0, 300) };
  try {
    return await response.json();
  } catch {
    return { code: "UNREADABLE", detail: "The server sent an invalid response." };
  }
}

export async function get(where, params, signal) {
  return (await measured(where, params, signal)).value;
}

// { value, cost }: with the milliseconds of the server's processor that it took, as far as the server says.
export async function measured(where, params, signal) {
  const response = await send(`${ROOT}${where}${search(params)}`, { headers: { Accept: "application/json" }, signal });
  const value = await body(response);
  if (!response.ok) throw new Problem({ ...value, status: response.status });
  return { value, cost: Number(/cpu;dur=([\d.]+)/.exec(response.headers.get("Server-Timing"))?.[1] ?? 0) };
}

function requestId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `web-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

// An outcome: { ok, outcome, message, hint, … }, also for a refusal. An error throws a Problem.
export async function command(where, fields = {}, method = "POST") {
  const headers = {
    "Content-Type": "application/json", Accept: "application/json", "Idempotency-Key": requestId(), ...speaker(),
  };
  const ask = { method, headers, body: JSON.stringify(fields) };
  let response;
  try {
    response = await send(`${ROOT}${where}`, ask);
  } catch (error) {
    if (error.status !== 0) throw error;
    response = await send(`${ROOT}${where}`, ask); // the same id: it runs once, even if the first request arrived
  }
  const value = await body(response);
  if (value.outcome) return { ...value, ok: response.ok };
  if (!response.ok) throw new Problem({ ...value, status: response.status });
  return { ...value, ok: true };
}

// One outcome for each command, in order.
export const batch = (project, commands) => many(project, "batch", commands);

// The same outcomes; nothing is written.
export const preview = (project, commands) => many(project, "preview", commands);

async function many(project, verb, commands) {
  const value = await command(path(project, verb), { commands });
  return value.outcomes.map((outcome) => ({ ...outcome, ok: isDone(outcome) }));
}

const DONE = new Set(["OK", "CREATED", "EXISTS", "UPDATED", "UNCHANGED"]);
const isDone = (outcome) => DONE.has(outcome.outcome);

// Returns the new principal. The key names its tenant; where the address names one, it must be the same.
// `isAnother`: any tenant.
export async function signIn(key, { isAnother = false } = {}) {
  if (!isAnother) forgetTenant();
  const response = await send("/login", {
    method: "POST",
    headers: { "Content-Type": "application/json", Accept: "application/json" },
    isAnywhere: isAnother,
    body: JSON.stringify({ key }),
  });
  const value = await body(response);
  if (!response.ok) throw new Problem({ ...value, status: response.status });
  return value;
}

export function signedIn() {
  isUnknown.set(false);
  signedOut.set(false);
}

export async function signOut() {
  await send("/logout", { method: "POST", headers: { "Content-Type": "application/json" }, body: "{}" });
  forgetTenant();
  signedOut.set(true);
}
