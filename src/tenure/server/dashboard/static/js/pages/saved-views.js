// Filters of the task list under a name, kept in this browser: one click away.
import { html, useState } from "../html.js";
import { Ask } from "../parts/dialogs.js";
import { Icon } from "../parts/icons.js";
import { address } from "../router.js";
import { ofProject, store, stored } from "../storage.js";

const MOST = 20;

function read(project) {
  try {
    const views = JSON.parse(stored(ofProject("views", project), "[]"));
    return Array.isArray(views) ? views.filter(({ name, query }) => typeof name === "string" && typeof query === "string") : [];
  } catch {
    return [];
  }
}

export function SavedViews({ project, query }) {
  const [views, set] = useState(() => read(project));
  const [isAsking, ask] = useState(false);
  const now = String(query);
  const keep = (next) => {
    store(ofProject("views", project), JSON.stringify(next));
    set(next);
  };
  const save = ({ name }) => keep([...views.filter((view) => view.name !== name.trim()), { name: name.trim(), query: now }].slice(-MOST));
  const isNew = now && !views.some((view) => view.query === now);
  if (!views.length && !isNew) return null;
  return html`<div class="saved-views" role="group" aria-label="Saved views">
    ${views.map((view) => html`<span key=${view.name} class="saved-view">
      <a class="chip" href=${address(project, "tasks", null, new URLSearchParams(view.query))}
        aria-current=${view.query === now ? "true" : undefined}>${view.name}</a>
      <button class="button ghost small" aria-label=${`Remove the view ${view.name}`} title="Remove"
        onClick=${() => keep(views.filter((one) => one !== view))}><${Icon} name="close" /></button>
    </span>`)}
    ${isNew && html`<button class="button small ghost" onClick=${() => ask(true)}>
      <${Icon} name="plus" /> Save this view</button>`}
    ${isAsking && html`<${Ask} title="Save this view" action="Save" run=${save} close=${() => ask(false)}
      text="Keeps the filters and the order under a name, in this browser."
      fields=${[{ name: "name", label: "Name", required: true }]} />`}
  </div>`;
}
