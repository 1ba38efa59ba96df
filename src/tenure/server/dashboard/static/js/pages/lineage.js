// The generations of a task as a timeline: holder, times, end, and refused results.
import { html } from "../html.js";
import { Lasting, Time, useNow } from "../time.js";
import { dollars, moment } from "../format.js";
import { Artifacts, Verdict } from "./verdicts.js";

const ENDINGS = {
  COMPLETED: "completed it", SUBMITTED: "submitted it", FAILED: "failed", EXPIRED: "lost its lease",
  VOLUNTARY: "released it", STOPPED: "was stopped", PAUSED: "was paused", WAITING: "waits for subtasks",
  CANCELLED: "was cancelled", SUPERSEDED: "was replaced", ERROR: "was aborted",
};
const TONES = {
  COMPLETED: "good", SUBMITTED: "good", FAILED: "bad", ERROR: "bad", EXPIRED: "odd", SUPERSEDED: "odd",
};
function toneOf(claim) {
  if (claim.state === "active" || ["waiting", "running", "review", "landing"].includes(claim.validation?.state)) return "work";
  return claim.result_accepted === false ? "bad" : TONES[claim.release_reason] ?? "rest";
}

export function Lineage({ project, claims, task }) {
  return html`
    ${claims.length > 1 && html`<${Strip} claims=${claims} />`}
    <ol class="lineage">${[...claims].reverse().map((claim) =>
      html`<${Generation} key=${claim.generation} project=${project} claim=${claim} task=${task} />`)}</ol>`;
}

// All generations on one timeline.
function Strip({ claims }) {
  const now = useNow();
  const ends = (claim) => (claim.released_at ? Date.parse(claim.released_at) : now);
  const from = Date.parse(claims[0].acquired_at);
  const to = Math.max(...claims.map(ends), from + 1);
  const share = (at) => (100 * (at - from)) / (to - from);
  const label = `${claims.length} generations from ${moment(claims[0].acquired_at)}`;
  return html`<div class="strip" role="img" aria-label=${label}>${claims.map((claim) => {
    const start = share(Date.parse(claim.acquired_at));
    const width = Math.max(0.6, share(ends(claim)) - start);
    return html`<span key=${claim.generation} class=${`span ${toneOf(claim)}`}
      title=${`generation ${claim.generation}: ${claim.agent}`}
      style=${{ left: `${start}%`, width: `${width}%` }}></span>`;
  })}</div>`;
}

// Whether the verdict already shows the error.
function isInVerdict(claim) {
  return claim.validation?.reasons.join("; ") === claim.error;
}

function Generation({ project, claim, task }) {
  const isHeld = claim.state === "active";
  const ending = isHeld ? "holds it" : ENDINGS[claim.release_reason] ?? claim.release_reason;
  const counts = [
    `generation ${claim.generation}`, claim.run > 1 && `run ${claim.run}`, `attempt ${claim.attempt}`,
    !claim.counted && "not counted",
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
      ${claim.opened_by && html`<p class="faint text">claimed for it by ${claim.opened_by}</p>`}
      ${claim.submitted_by && html`<p class="faint text">submitted by ${claim.submitted_by}</p>`}
      <${Models} claim=${claim} />
      ${claim.error && !isInVerdict(claim) && html`<p class="generation-error text">
        <span class="tag bad">${claim.error_class}</span> ${claim.error}
      </p>`}
      ${claim.trace && html`<details class="trace">
        <summary>Stack trace</summary><pre class="terminal" tabindex="0">${claim.trace}</pre>
      </details>`}
      ${claim.work_product_ref && html`<p class="mono faint text">${claim.work_product_ref}</p>`}
      ${claim.signatures && html`<p class="faint">signed by the key <span class="mono">${
        [...new Set(claim.signatures.map((one) => one.fingerprint))].join(", ")}</span></p>`}
      ${(claim.landings ?? []).map((one) => html`<p key=${one.new} class="faint text">
        landing of <span class="mono">${one.new.slice(0, 12)}</span> on ${one.branch}${
          one.reported && ", reported by its holder: look in git whether it is there"}</p>`)}
      <${Artifacts} project=${project} task=${task.key} artifacts=${claim.artifacts} />
      ${claim.validation && html`<${Verdict} check=${claim.validation} />`}
      ${(claim.refused ?? []).filter((result) => result.id !== claim.validation?.result).map((result) =>
        html`<${Refused} key=${result.id} result=${result} />`)}
    </div>
  </li>`;
}

// The recommended model and why, and the models used.
function Models({ claim }) {
  const used = claim.usage?.models ?? [];
  if (!claim.model && !used.length) return null;
  return html`<p class="faint text">
    ${claim.model && html`recommended <b>${claim.model}</b>${claim.why && `: ${claim.why}`}`}
    ${claim.model && used.length > 0 && "; "}${used.length > 0 && `used ${used.join(", ")}`}
  </p>`;
}

function Refused({ result }) {
  return html`<div class="refused">
    <p>
      <b>✗ Refused</b> <span class="mono">${result.reason}</span>
      <span class="faint text"> from ${result.agent}, <${Time} at=${result.submitted_at} />; kept</span>
    </p>
    ${result.summary && html`<p class="text">${result.summary}</p>`}
  </div>`;
}
