// The webhooks of a project: state, receiver, counts, last answer.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Facts } from "../parts/panels.js";
import { address } from "../router.js";
import { Time } from "../time.js";
import { number } from "../format.js";
import { Verbs, useAfterEvents } from "./webhook-actions.js";

const TONES = { ok: "good", failing: "odd", down: "bad", paused: "" };

export function Webhooks({ project, ask, show }) {
  const webhooks = useQuery(path(project, "webhooks"), {}, { pause: 1000 });
  useAfterEvents(webhooks.reload);
  return html`<section aria-labelledby="webhooks">
    <h2 id="webhooks" class="section-head">Webhooks</h2>
    <${Loaded} of=${webhooks} lines=${3} what="Loading the webhooks">${({ items }) => items.length
      ? html`<ul class="cards sources">${items.map((one) => html`<li key=${one.name}
          class=${`card source ${one.enabled ? "" : "off"}`} data-name=${one.name}>
          <div class="card-head">
            <a class="card-title text" href=${address(project, "delivery", one.name)}>${one.name}</a>
            <${WebhookState} webhook=${one} />
          </div>
          <${About} webhook=${one} />
          <div class="card-actions">
            <a class="button small" href=${address(project, "delivery", one.name)}
              aria-label=${`Deliveries of ${one.name}`}>Deliveries</a>
            ${ask && html`<${Verbs} project=${project} webhook=${one} ask=${ask} show=${show} />`}
          </div>
        </li>`)}</ul>`
      : html`<${Empty} title="No webhooks yet">
          <p>A webhook sends events of this project to a URL, signed.</p>
        <//>`}<//>
  </section>`;
}

export function WebhookState({ webhook }) {
  const { state } = webhook;
  return html`<span class="dot-label"><i class=${`dot ${TONES[state] ?? ""}`}></i>${state}</span>`;
}

// Its facts, on the list and on its page.
export function About({ webhook }) {
  const where = Object.entries(webhook.filter).map(([at, value]) => `${at}: ${JSON.stringify(value)}`);
  return html`
    <p class="quiet mono text">${webhook.url}</p>
    <${Facts} of=${[
      ["Kinds", html`<span class="mono">${webhook.kinds.join(", ")}</span>`],
      where.length && ["Where", html`<span class="mono">${where.join(", ")}</span>`],
      ["Delivered · parked · failed", [webhook.delivered, webhook.parked, webhook.failed].map(number).join(" · ")],
      ["Last answer", html`<${LastAnswer} webhook=${webhook} />`],
      webhook.down_since && ["Down since", html`<${Time} at=${webhook.down_since} />`],
      !webhook.enabled && ["Paused", html`${webhook.disabled_for}${webhook.disabled_at && html`
        <span class="faint"> <${Time} at=${webhook.disabled_at} /></span>`}`],
      webhook.previous_until && ["Old secret", html`also signs until <${Time} at=${webhook.previous_until} />`],
    ]} />
    ${webhook.error && html`<p class="problem text">${webhook.error}</p>`}`;
}

function LastAnswer({ webhook }) {
  const at = [webhook.success_at, webhook.failure_at].filter(Boolean).sort().at(-1);
  if (!at) return html`<span class="faint">none yet</span>`;
  return html`${webhook.status ? `HTTP ${webhook.status}` : "no answer"}
    <span class="faint"> <${Time} at=${at} /></span>`;
}
