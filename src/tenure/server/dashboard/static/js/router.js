// Addresses: /projects/NAME/PAGE/ID?filters, with the nouns of the API, or below /t/TENANT. The server returns the same
// page for all.
import { html } from "./html.js";
import { Signal, useSignal } from "./signal.js";
import { base, named, tenantIn } from "./tenant.js";

function read() {
  const parts = location.pathname.slice(base.length).split("/").filter(Boolean).map(decodeURIComponent);
  const query = new URLSearchParams(location.search);
  if (parts[0] !== "projects") return { project: null, page: parts[0] || "", id: null, query };
  return { project: parts[1] ?? null, page: parts[2] || "", id: parts[3] ?? null, query };
}

function readSafely() {
  try {
    return read();
  } catch {
    return { project: null, page: "nowhere", id: null, query: new URLSearchParams() };
  }
}

export const route = new Signal(readSafely());
export const useRoute = () => useSignal(route);

// `project` null: a page of the tenant.
export function address(project, page = "", id = null, query = null) {
  const path = [project && "projects", project, page, id].filter((part) => part !== null && part !== "");
  const search = query ? String(query instanceof URLSearchParams ? query : new URLSearchParams(query)) : "";
  return `${base}/${path.map(encodeURIComponent).join("/")}${search ? `?${search}` : ""}`;
}

export function go(href, { replace = false } = {}) {
  if (replace) history.replaceState(null, "", href);
  else history.pushState(null, "", href);
  const before = route.value;
  route.set(readSafely());
  if (before.page !== route.value.page || before.id !== route.value.id) scrollTo(0, 0);
}

// The same page with other filters; an empty filter is removed from the address.
export function filter(changes, { replace = true } = {}) {
  const { project, page, id, query } = route.value;
  const next = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    next.delete(name);
    for (const one of [value].flat()) if (one !== null && one !== undefined && one !== "") next.append(name, one);
  }
  go(address(project, page, id, next), { replace });
}

addEventListener("popstate", () => route.set(readSafely()));

// Handle links within the dashboard; with a modifier key the browser does.
document.addEventListener("click", (event) => {
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.target || link.hasAttribute("download")) return;
  if (link.getAttribute("href").startsWith("#") || tenantIn(link.pathname) !== named) return;
  event.preventDefault();
  go(link.pathname + link.search);
});

export function TaskLink({ project, task, children, ...rest }) {
  return html`<a href=${address(project, "tasks", task)} ...${rest}>${children ?? task}</a>`;
}
