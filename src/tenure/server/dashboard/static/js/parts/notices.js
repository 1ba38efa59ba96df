// Notices in place of data: loading, empty, not allowed, unavailable, failed.
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

// Grey lines while data loads, with a label for screen readers.
export function Loading({ lines = 5, what = "Loading" }) {
  return html`<div class="loading" role="status" aria-label=${what}>
    ${Array.from({ length: lines }, (_, n) => html`<span key=${n} class=${`line l${n % 4}`}></span>`)}
  </div>`;
}

export function Failure({ error, retry }) {
  const again = retry && html`<p><button class="button" onClick=${retry}>Try again</button></p>`;
  if (error.status === 403) {
    return html`<${Notice} sign="⊘" title="Not allowed">${error.message}<//>`;
  }
  if (error.status === 404) {
    return html`<${Notice} sign="∅" title="Not found">${error.message}<//>`;
  }
  if (error.isUnavailable) {
    return html`<${Notice} sign="⌁" title="The server is unavailable" tone="odd">
      ${error.message} The page retries automatically.${again}
    <//>`;
  }
  return html`<${Notice} sign="✗" title="Request failed" tone="bad">
    ${error.message}${error.hint && html`<br />${error.hint}`}${again}
  <//>`;
}

// `of`: a query (see query.js). Its last data stays visible, with a notice if a refresh failed.
export function Loaded({ of, lines = 6, what, children }) {
  if (of.data === null) {
    if (of.error) return html`<${Failure} error=${of.error} retry=${of.reload} />`;
    return html`<${Loading} lines=${lines} what=${what} />`;
  }
  const stale = of.error && !of.error.isUnavailable && html`<${Failure} error=${of.error} retry=${of.reload} />`;
  return html`${stale}${children(of.data)}`;
}
