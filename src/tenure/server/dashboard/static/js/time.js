// Relative times, updated by one clock for the whole page.
import { skew } from "./api.js";
import { html, useEffect, useState } from "./html.js";
import { Signal } from "./signal.js";
import { NOTHING, briefly, lasting, moment, nameIn } from "./format.js";

const second = new Signal(0);
setInterval(() => {
  if (!document.hidden) second.set(second.value + 1);
}, 1000);

// The server's time, in milliseconds.
export const now = () => Date.now() + skew.value;

export function useNow() {
  const [, draw] = useState(0);
  useEffect(() => second.listen(draw), []);
  return now();
}

export const since = (iso, at = now()) => (at - Date.parse(iso)) / 1000;

// `12 s ago`, or `in 5 s`, with the full time in the title. `brief`: one unit without "ago", for narrow columns.
export function Time({ at, brief = false }) {
  const seconds = since(at ?? 0, useNow());
  if (!at) return html`<span class="faint">${NOTHING}</span>`;
  return html`<time datetime=${at} title=${moment(at)}>${brief ? briefly(Math.abs(seconds)) : spoken(seconds)}</time>`;
}

// `5 min ago by mia`. Names of principals begin with their kind, as in `human:mia`.
export function Done({ at, by }) {
  const name = nameIn(by);
  return html`<${Time} at=${at} />${name && html` by <span class="text">${name}</span>`}`;
}

function spoken(seconds) {
  if (seconds <= -1) return `in ${lasting(-seconds)}`;
  return seconds < 1 ? "now" : `${seconds < 600 ? lasting(seconds) : briefly(seconds)} ago`;
}

// A duration, up to now if it has not ended.
export function Lasting({ from, to = null }) {
  const at = useNow();
  if (!from) return NOTHING;
  const seconds = ((to ? Date.parse(to) : at) - Date.parse(from)) / 1000;
  return html`<span title=${`${moment(from)} – ${to ? moment(to) : "now"}`}>${lasting(Math.max(0, seconds))}</span>`;
}
