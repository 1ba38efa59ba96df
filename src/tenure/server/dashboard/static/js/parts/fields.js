// The fields of a form, what they send, and the errors beside them.
import { html, useId } from "../html.js";
import { Suggestions } from "./filters.js";

// A value that a field cannot send; shown beside the field.
export class FieldError extends Error {
  constructor(field, message) {
    super(message);
    this.field = field;
  }
}

// What each kind of field sends for its text; kinds that are not here send the text.
const SENT = {
  list: (text) => text.split(/[\s,]+/).filter(Boolean),
  json: (text, field) => parsed(text, field),
  whole: (text) => (text.trim() ? Number(text) : null),
  time: (text) => (text ? Date.parse(text) * 1000 : null), // the API's instants are microseconds
};

function parsed(text, { name, label }) {
  if (!text.trim()) return {};
  let value = null;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new FieldError(name, `${label} is not valid JSON: ${error.message}`);
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) {
    throw new FieldError(name, `${label} must be a JSON object, as in {"name": "value"}.`);
  }
  return value;
}

// The value that a field sends.
export const sentBy = (field, text) => (SENT[field.kind] && typeof text === "string" ? SENT[field.kind](text, field) : text);

// The text of a value in its field.
export function shownIn(kind, value) {
  if (value === null || value === undefined) return "";
  if (kind === "list") return value.join(" ");
  if (kind === "json") return Object.keys(value).length ? JSON.stringify(value, null, 2) : "";
  if (kind === "time") return localTime(value);
  return kind === "check" ? value : String(value);
}

// `2026-11-17T09:30`, in the time of this browser.
function localTime(iso) {
  const at = new Date(iso);
  return new Date(at - at.getTimezoneOffset() * 60_000).toISOString().slice(0, 16);
}

// The field that an error is about: errors of the server quote its value, or name it at their start or as a path such
// as `$.task.title`.
export function fieldOf(problem, fields, values) {
  if (problem.field) return fields.find(({ name }) => name === problem.field) ?? null;
  const quoted = [...problem.message.matchAll(/'([^']+)'/g)].map(([, text]) => text);
  const same = fields.find(({ name }) => quoted.includes(values[name]));
  if (same) return same;
  const words = /^(?:\w+: )?(?:task\.|changes\.)?([a-z_]+)/.exec(problem.message)?.[1];
  const path = /at `\$([^`]*)`/.exec(problem.message)?.[1] ?? "";
  const named = [...path.matchAll(/[a-z_]+/g)].map(([name]) => name);
  return fields.find(({ name, says = [] }) => [name, ...says].some((one) => one === words || named.includes(one))) ?? null;
}

const TYPES = { whole: "number", time: "datetime-local", list: "text" };
const LONG = { text: 3, long: 7, json: 4 }; // rows

export function Field({ field, options, value, set, isFirst, problem = null }) {
  const id = useId();
  if (field.kind === "check") {
    const checked = (event) => set(event.target.checked);
    return html`<label class="check">
      <input type="checkbox" checked=${Boolean(value)} onChange=${checked} /> ${field.label}
    </label>`;
  }
  const list = options && field.kind !== "choice" ? `${id}-list` : null;
  const typed = (event) => set(event.target.value);
  const about = [field.hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean).join(" ");
  const same = {
    id, value, required: field.required, autofocus: isFirst, onInput: typed,
    "aria-describedby": about || undefined, "aria-invalid": problem ? "true" : undefined,
  };
  const type = TYPES[field.kind] ?? field.kind ?? "text";
  const input = { type, autocomplete: "off", list, pattern: field.pattern, min: field.min, step: field.step };
  const option = ([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`;
  const rows = LONG[field.kind];
  return html`<div class="field">
    <label for=${id}>${field.label}</label>
    ${rows && html`<textarea rows=${field.rows ?? rows} class=${field.kind === "json" ? "mono" : ""} spellcheck=${field.kind !== "json"}
      placeholder=${field.placeholder} ...${same}></textarea>`}
    ${field.kind === "choice" && html`<select ...${same}>${options.map(option)}</select>`}
    ${!rows && field.kind !== "choice" && html`<input ...${input} placeholder=${field.placeholder} ...${same} />`}
    ${list && html`<${Suggestions} id=${list} texts=${options} />`}
    ${field.hint && html`<p id=${`${id}-hint`} class="hint">${field.hint}</p>`}
    ${problem && html`<p id=${`${id}-problem`} class="problem text" role="alert">${problem.message}
      ${problem.hint && html`<br /><span class="faint">${problem.hint}</span>`}</p>`}
  </div>`;
}
