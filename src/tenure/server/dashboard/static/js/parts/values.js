// Values from agents and people: text as text, structures as foldable trees. Never as markup.
import { html, useState } from "../html.js";
import { number } from "../format.js";

const LONG = 1200; // characters of a text that are shown at first
const MOST = 100; // entries of one list
const DEEP = 3; // levels that are open at first

// Text as text; other values as a tree.
export function Value({ value }) {
  if (typeof value === "string") return html`<${Text} text=${value} />`;
  return html`<div class="tree"><${Node} value=${value} depth=${0} /></div>`;
}

function Text({ text }) {
  const [isWhole, setWhole] = useState(false);
  if (isWhole || text.length <= LONG) return html`<div class="prose">${text}</div>`;
  return html`
    <div class="prose">${text.slice(0, LONG)}…</div>
    <button class="button small" onClick=${() => setWhole(true)}>Show all ${number(text.length)} characters</button>`;
}

function Node({ name, value, depth }) {
  const label = name !== undefined && html`<span class="tree-name">${name}</span>`;
  if (value === null || typeof value !== "object") {
    const kind = value === null ? "null" : typeof value;
    return html`<div class="tree-line">${label} <span class=${`tree-${kind}`}>${String(value)}</span></div>`;
  }
  const entries = Object.entries(value);
  if (!entries.length) return html`<div class="tree-line">${label} <span class="faint">empty</span></div>`;
  const node = ([key, one]) => html`<${Node} key=${key} name=${key} value=${one} depth=${depth + 1} />`;
  const inside = html`
    ${entries.slice(0, MOST).map(node)}
    ${entries.length > MOST && html`<div class="tree-line faint">and ${number(entries.length - MOST)} more</div>`}`;
  if (name === undefined) return inside;
  return html`<details class="tree-branch" open=${depth < DEEP}>
    <summary>${label} <span class="faint">${number(entries.length)}</span></summary>${inside}
  </details>`;
}
