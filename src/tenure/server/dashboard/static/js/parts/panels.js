// Boxes with a heading, and facts as names and values.
import { html } from "../html.js";

export function Panel({ title, flush = false, children }) {
  return html`<section class=${`panel ${flush ? "flush" : ""}`}><h2>${title}</h2>${children}</section>`;
}

// `of`: [[name, value], …]; rows without a value are omitted.
export function Facts({ of, wide = false }) {
  const there = of.filter((fact) => fact && ![null, undefined, false, ""].includes(fact[1]));
  return html`<dl class=${`facts ${wide ? "wide" : ""}`}>
    ${there.map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd class="text">${value}</dd></div>`)}
  </dl>`;
}

export function Tile({ label, value, href = null, tone = "", children }) {
  const inside = html`
    <span class="tile-label">${label}</span>
    <span class=${`tile-value ${tone}`}>${value}</span>
    <span class="tile-more">${children}</span>`;
  return href ? html`<a class="tile" href=${href}>${inside}</a>` : html`<div class="tile">${inside}</div>`;
}
