// One webhook with its delivery log.
import { path } from "../api.js";
import { html, useState } from "../html.js";
import { useQuery } from "../query.js";
import { useAdmin } from "../me.js";
import { Tabs } from "../parts/filters.js";
import { Empty, Loaded } from "../parts/notices.js";
import { address, filter, useRoute } from "../router.js";
import { Time } from "../time.js";
import { counted, lasting, number } from "../format.js";
import { useDialogs } from "./delivery.js";
import { Verbs, replay, replaying, useAfterEvents } from "./webhook-actions.js";
import { About, WebhookState } from "./webhooks.js";

const STATES = [["", "All"], ["parked", "Parked"], ["delivered", "Delivered"], ["failed", "Failed"]];
const TONES = { parked: "odd", delivered: "good", failed: "bad" };
const FIRST = 100; // shown at first
const MOST = 1000; // kept in the log

export function Webhook({ project, id }) {
  const webhook = useQuery(path(project, "webhooks", id), {}, { pause: 1000 });
  const dialogs = useDialogs();
  const isAdmin = useAdmin();
  useAfterEvents(webhook.reload);
  const actions = (one) => html`<div class="actions">
    <${Verbs} project=${project} webhook=${one} ask=${dialogs.ask} show=${dialogs.show} /></div>`;
  return html`
    <header class="page-head">
      <div>
        <p class="crumbs"><a href=${address(project, "delivery")}>Delivery</a> / ${id}</p>
        <h1 class="text">${id}</h1>
      </div>
      ${isAdmin && webhook.data && actions(webhook.data)}
    </header>
    <${Loaded} of=${webhook} what="Loading the webhook">${(one) => html`
      <section class="panel webhook" aria-label="State">
        <p><${WebhookState} webhook=${one} /></p>
        <${About} webhook=${one} />
      </section>
      <${Deliveries} project=${project} webhook=${one} ask=${isAdmin ? dialogs.ask : null} />`}<//>
    ${dialogs.view}`;
}

function Deliveries({ project, webhook, ask }) {
  const { query } = useRoute();
  const state = query.get("state") ?? "";
  const [limit, setLimit] = useState(FIRST);
  const log = useQuery(path(project, "webhooks", webhook.name, "deliveries"), { state, limit }, { pause: 1000 });
  useAfterEvents(log.reload);
  return html`<section class="below-panel" aria-labelledby="log">
    <div class="page-head">
      <h2 id="log">Delivery log</h2>
      <${Tabs} label="State" value=${state} options=${STATES} onChange=${(value) => filter({ state: value })} />
      ${ask && html`<button class="button small" onClick=${() => ask(replaying(project, webhook))}>Replay</button>`}
    </div>
    <${Loaded} of=${log} lines=${5} what="Loading the deliveries">${({ items }) => items.length
      ? html`
          <ol class="deliveries panel flush">${items.map((one) => html`
            <${Line} key=${one.message} project=${project} name=${webhook.name} delivery=${one} canReplay=${ask} />`)}</ol>
          <p class="note">${counted(items.length, "delivery", "deliveries")}; the log has the last ${number(MOST)}.</p>
          ${items.length === limit && limit < MOST && html`
            <button class="button" onClick=${() => setLimit(MOST)}>Show more</button>`}`
      : html`<${Empty} title="No deliveries">
          ${state ? "No delivery has this state." : "Deliveries appear here after an event that the webhook asks for."}
        <//>`}<//>
  </section>`;
}

function Line({ project, name, delivery, canReplay }) {
  const { state, status, error } = delivery;
  const label = state === "parked" ? "Send now" : "Replay";
  return html`<li class="delivery" data-message=${delivery.message} data-state=${state}>
    <span class="dot-label"><i class=${`dot ${TONES[state] ?? ""}`}></i>${state}</span>
    <span class="delivery-what">
      <span class="mono">${delivery.kind}</span>
      <span class="faint"> event ${number(delivery.sequence)}, <${Time} at=${delivery.at} /></span>
      ${error && html`<span class="problem text delivery-error">${error}</span>`}
    </span>
    <span class="delivery-answer">
      ${status ? `HTTP ${status}` : delivery.tries ? "no answer" : "not tried"}
      <span class="faint">
        ${delivery.tries > 0 && ` ${counted(delivery.tries, "try", "tries")}`}
        ${delivery.duration !== null && `, ${lasting(delivery.duration)}`}
        ${state === "parked" && delivery.next_at && html`, next <${Time} at=${delivery.next_at} />`}
      </span>
    </span>
    ${canReplay && html`<button class="button small" aria-label=${`${label}: ${delivery.kind}, event ${delivery.sequence}`}
      onClick=${() => replay(project, name, delivery.message)}>${label}</button>`}
  </li>`;
}
