// What stands where data would: loading, nothing there, not allowed, away, broken. And the look that picks one.
import { html } from "../html.js";

export function Notice({ sign, title, children, tone = "" }) {
  return html`<div class=${`notice ${tone}`} role=${tone === "bad" ? "alert" : "status"}>
    <span class="notice-sign" aria-hidden="true">${sign}</span>
    <div><p class="notice-title">${title}</p>${children && html`<div class="notice-text">${children}</div>`}</div>
  </div>`;
}

export function Empty({ title, children }) {
  return html`<${Notice} sign="○" title=${title}>${children}<//>`;
}

// Grey lines in the shape of what will come; said aloud once.
export function Loading({ lines = 5, what = "Loading" }) {
  return html`<div class="loading" role="status" aria-label=${what}>
    ${Array.from({ length: lines }, (_, n) => html`<span key=${n} class=${`line l${n % 4}`}></span>`)}
  </div>`;
}

export function Failure({ error, retry }) {
  const again = retry && html`<p><button class="button" onClick=${retry}>Try again</button></p>`;
  if (error.status === 403) {
    return html`<${Notice} sign="⊘" title="You may not see this">${error.message}<//>`;
  }
  if (error.status === 404) {
    return html`<${Notice} sign="∅" title="There is no such thing here">${error.message}<//>`;
  }
  if (error.isAway) {
    return html`<${Notice} sign="⌁" title="The server is away" tone="odd">
      ${error.message} It is tried again as soon as it is back.${again}
    <//>`;
  }
  return html`<${Notice} sign="✗" title="This did not work" tone="bad">
    ${error.message}${error.hint && html`<br />${error.hint}`}${again}
  <//>`;
}

// `of`: a look (see look.js). While it has data that is shown, with a word above it where it could not be renewed.
export function Looked({ of, lines = 6, what, children }) {
  if (of.data === null) {
    if (of.error) return html`<${Failure} error=${of.error} retry=${of.reload} />`;
    return html`<${Loading} lines=${lines} what=${what} />`;
  }
  const stale = of.error && !of.error.isAway && html`<${Failure} error=${of.error} retry=${of.reload} />`;
  return html`${stale}${children(of.data)}`;
}
