// The generations of a task as a timeline: who held it, from when to when, how it ended; and what was refused.
import { html } from "../html.js";
import { Lasting, Time, useNow } from "../time.js";
import { dollars, moment } from "../words.js";

const ENDINGS = {
  COMPLETED: "completed it", SUBMITTED: "handed it in", FAILED: "failed", EXPIRED: "lost its lease",
  VOLUNTARY: "gave it back", PAUSED: "was paused", WAITING: "waits for subtasks", CANCELLED: "was cancelled",
  SUPERSEDED: "was taken off it", ERROR: "was cut off",
};
const TONES = {
  COMPLETED: "good", SUBMITTED: "good", FAILED: "bad", ERROR: "bad", EXPIRED: "odd", SUPERSEDED: "odd",
};
const toneOf = (claim) => (claim.state === "active" ? "work" : TONES[claim.release_reason] ?? "rest");

export function Lineage({ claims, task }) {
  return html`
    ${claims.length > 1 && html`<${Strip} claims=${claims} />`}
    <ol class="lineage">${[...claims].reverse().map((claim) =>
      html`<${Generation} key=${claim.generation} claim=${claim} task=${task} />`)}</ol>`;
}

// All generations on one line of time.
function Strip({ claims }) {
  const now = useNow();
  const ends = (claim) => (claim.released_at ? Date.parse(claim.released_at) : now);
  const from = Date.parse(claims[0].acquired_at);
  const to = Math.max(...claims.map(ends), from + 1);
  const share = (at) => (100 * (at - from)) / (to - from);
  const said = `${claims.length} generations from ${moment(claims[0].acquired_at)}`;
  return html`<div class="strip" role="img" aria-label=${said}>${claims.map((claim) => {
    const start = share(Date.parse(claim.acquired_at));
    const width = Math.max(0.6, share(ends(claim)) - start);
    return html`<span key=${claim.generation} class=${`span ${toneOf(claim)}`}
      title=${`generation ${claim.generation}: ${claim.agent}`}
      style=${{ left: `${start}%`, width: `${width}%` }}></span>`;
  })}</div>`;
}

function Generation({ claim, task }) {
  const isHeld = claim.state === "active";
  const ending = isHeld ? "holds it" : ENDINGS[claim.release_reason] ?? claim.release_reason;
  const counts = [
    `generation ${claim.generation}`, claim.run > 1 && `run ${claim.run}`, `attempt ${claim.attempt}`,
    !claim.counted && "given back",
  ].filter(Boolean);
  return html`<li class=${`generation ${toneOf(claim)}`}>
    <span class="node" aria-hidden="true">${claim.generation}</span>
    <div class="generation-body">
      <p><b class="text">${claim.agent}</b> ${ending} <span class="faint">· ${counts.join(", ")}</span></p>
      <p class="faint">
        <${Time} at=${claim.acquired_at} /> · held for <${Lasting} from=${claim.acquired_at} to=${claim.released_at} />
        ${claim.renewals > 0 && ` · ${claim.renewals}× renewed`}
        ${isHeld && task.lease_until && html` · lease ends <${Time} at=${task.lease_until} />`}
        ${claim.usage?.cost_usd && ` · ${dollars(claim.usage.cost_usd)}`}
        ${" · "}<span class="mono text">${claim.session}</span>
      </p>
      ${claim.error && html`<p class="generation-error text">
        <span class="tag bad">${claim.error_class}</span> ${claim.error}
      </p>`}
      ${claim.work_product_ref && html`<p class="mono faint text">${claim.work_product_ref}</p>`}
      ${claim.landing && html`<p class="faint text">landing on ${claim.landing.branch}</p>`}
      ${(claim.refused ?? []).map((result) => html`<${Refused} key=${result.id} result=${result} />`)}
    </div>
  </li>`;
}

function Refused({ result }) {
  return html`<div class="refused">
    <p>
      <b>✗ Refused</b> <span class="mono">${result.reason}</span>
      <span class="faint text"> from ${result.agent}, <${Time} at=${result.submitted_at} />; it was kept</span>
    </p>
    ${result.summary && html`<p class="text">${result.summary}</p>`}
  </div>`;
}
