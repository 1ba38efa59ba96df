// States and shares: a sign and a word, with colour only in addition.
import { html } from "../html.js";
import { MARKS, inWords, number } from "../format.js";

export function State({ state, short = false }) {
  return html`<span class=${`state s-${state}`} title=${short ? inWords(state) : undefined}>
    <span class="mark" aria-hidden="true">${MARKS[state] ?? "?"}</span>
    <span class=${short ? "hidden" : ""}>${inWords(state)}</span>
  </span>`;
}

// A bar of parts: [{ name, value, tone }]. Small parts stay visible.
export function Bar({ parts, label }) {
  const there = parts.filter((part) => part.value > 0);
  const description = there.map((part) => `${number(part.value)} ${part.name}`).join(", ") || "nothing";
  return html`<div class="bar" role="img" aria-label=${label ? `${label}: ${description}` : description} title=${description}>
    ${there.map(({ name, value, tone }) => html`
      <span key=${name} class=${`fill ${tone}`} style=${{ flexGrow: value }}></span>`)}
  </div>`;
}

// The progress that a holder reported: percent, or only a step.
export function Progress({ percent = null, step = null }) {
  if (percent === null) return step && html`<span class="faint clip">${step}</span>`;
  return html`<span class="progress" title=${step ?? ""}>
    <span class="track" role="progressbar" aria-valuenow=${percent} aria-valuemin="0" aria-valuemax="100"
      aria-label="progress"><span class="fill" style=${{ width: `${Math.min(100, percent)}%` }}></span></span>
    <span class="figures">${percent} %</span>
  </span>`;
}
