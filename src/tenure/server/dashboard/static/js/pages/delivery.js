// Delivery: sinks that relay the log of the store, and the webhooks of the project.
import { html, useState } from "../html.js";
import { useAdmin, useOfAllProjects } from "../me.js";
import { Ask } from "../parts/dialogs.js";
import { Secret } from "../parts/secret.js";
import { Sinks } from "./sinks.js";
import { setting } from "./webhook-actions.js";
import { Webhooks } from "./webhooks.js";

export function Delivery({ project }) {
  const dialogs = useDialogs();
  const isOfAll = useOfAllProjects();
  const all = { project, ask: useAdmin() ? dialogs.ask : null, show: dialogs.show };
  return html`
    <header class="page-head">
      <h1>Delivery</h1>
      ${all.ask && html`<button class="button primary"
        onClick=${() => all.ask(setting(project, null, all.show))}>New webhook</button>`}
    </header>
    <div class="stack wide-gap">
      <${Webhooks} ...${all} />
      ${isOfAll && html`<${Sinks} ...${all} />`}
      ${isOfAll === false && html`<p class="hint">Sinks concern all projects. Your key is for some of them.</p>`}
    </div>
    ${dialogs.view}`;
}

// One question or one secret at a time. A secret is forgotten when its dialog closes.
export function useDialogs() {
  const [asked, ask] = useState(null);
  const [secret, show] = useState(null);
  const view = html`
    ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}
    ${secret && html`<${Secret} ...${secret} close=${() => show(null)} />`}`;
  return { ask, show, view };
}
