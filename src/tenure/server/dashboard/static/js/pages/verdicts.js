// The verdict on a result, and the artifacts of a claim.
import { PUBLIC_ROOT, path } from "../api.js";
import { html } from "../html.js";
import { Value } from "../parts/values.js";
import { Time } from "../time.js";
import { bytes, counted } from "../format.js";

const LABELS = {
  passed: ["good", "✓ Passed"], refused: ["bad", "✗ Refused"], withdrawn: ["rest", "– Withdrawn"],
  running: ["work", "◇ Validating"], review: ["odd", "◇ Waiting for review"], waiting: ["work", "◇ Waiting for"],
  landing: ["work", "◇ Passed, to be landed on"],
};

// Whether it is judged already, and only waits to be landed.
export const isToLand = (check) => Boolean(check) && check.phase !== "judge";

// Of a name in a verdict.
const NAMES = "Behind a server with sign-in the name is proven. On a store of one user it is a courtesy among processes.";

function nameOf(check) {
  if (check.state === "landing") return check.land.onto;
  return ["review", "none"].includes(check.validator) ? null : check.validator;
}

// One validation: validator, decider, reasons, tries, time.
export function Verdict({ check }) {
  const [tone, label] = LABELS[check.state];
  const who = check.decided_by ?? check.holder;
  const more = [who && `by ${who}`, check.tries > 0 && counted(check.tries, "try", "tries")].filter(Boolean);
  const hasDetails = Object.keys(check.details ?? {}).length > 0;
  return html`<div class=${`verdict ${tone}`}>
    <p>
      <b>${label}</b> ${nameOf(check) && html`<span class="mono text">${nameOf(check)}</span>${" "}`}
      <span class="faint text">
        <span title=${NAMES}>${more.map((part) => `${part}, `)}</span><${Time} at=${check.decided_at ?? check.taken_at ?? check.since} />
        ${check.retry_at && html`, retried <${Time} at=${check.retry_at} />`}
      </span>
    </p>
    ${check.reasons.length > 0 && html`<ul>${check.reasons.map((reason, n) => html`
      <li key=${n} class="text prose">${reason}</li>`)}</ul>`}
    ${check.state === "landing" && html`<p class="text quiet">
      Commit <span class="mono">${check.land.commit.slice(0, 12)}</span>${check.holder && `, ${check.holder} lands it`}
    </p>`}
    ${check.note && html`<p class="text quiet">${isToLand(check) ? "Not landed" : "Undecided"}: ${check.note}</p>`}
    ${hasDetails && html`<details><summary>Details</summary><${Value} value=${check.details} /></details>`}
  </div>`;
}

// Names are text of agents: shown as text, and escaped in the address. The server sends them as downloads.
export function Artifacts({ project, task, artifacts }) {
  if (!artifacts?.length) return null;
  const where = (one) => {
    const name = one.name.split("/").map(encodeURIComponent).join("/");
    return `${PUBLIC_ROOT}${path(project, "tasks", task, "artifacts")}/${name}?generation=${one.generation}`;
  };
  return html`<ul class="artifacts" aria-label="Artifacts">${artifacts.map((one) => html`<li key=${one.name}>
    <a class="mono text" href=${where(one)} download=${one.name.split("/").at(-1)}>${one.name}</a>
    <span class="faint text" title=${`SHA-256 ${one.digest}`}>${bytes(one.size)}, ${one.type}</span>
  </li>`)}</ul>`;
}
