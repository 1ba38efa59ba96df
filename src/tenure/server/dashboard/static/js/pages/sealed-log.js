// The sealed logs: of the project, and of what belongs to none, such as members and keys. Their heads, and a check.
import { command, get, path } from "../api.js";
import { html, useState } from "../html.js";
import { me, useOfAllProjects } from "../me.js";
import { useQuery } from "../query.js";
import { Ask } from "../parts/dialogs.js";
import { Failure, Loading } from "../parts/notices.js";
import { Facts, Panel } from "../parts/panels.js";
import { done } from "../parts/toasts.js";
import { useSignal } from "../signal.js";
import { Time } from "../time.js";
import { counted, number } from "../format.js";

// Each request seals new events first: it is sent once, not after each change.
const ONCE = { isLive: false };

export function SealedLog({ project }) {
  const isOfAll = useOfAllProjects();
  const settings = useQuery(path(project, "settings"), {}, ONCE);
  const isSealed = Boolean(settings.data?.audited_at);
  const ours = useQuery(isSealed && path(project, "audit", "head"), {}, ONCE);
  const store = useQuery(isOfAll && ours.data && path(project, "audit", "head"), { store: true }, ONCE);
  const [asked, ask] = useState(null);
  const error = settings.error ?? ours.error;
  const isOwner = useSignal(me)?.role === "owner";
  if (settings.data && !isSealed) {
    return html`<${Panel} title="Sealed log">
      <p class="quiet">The log is not sealed: somebody with access to the database could change it unnoticed.</p>
      ${isOwner && html`<p><button class="button small" onClick=${() => ask(sealing(project, settings.reload))}>Seal the log</button></p>`}
      ${asked && html`<${Ask} ...${asked} close=${() => ask(null)} />`}
    <//>`;
  }
  return html`<${Panel} title="Sealed log">
    ${ours.data === null && (error ? html`<${Failure} error=${error} />` : html`<${Loading} lines=${3} />`)}
    ${ours.data && html`<${Head} project=${project} head=${ours.data} title=${`Events of ${project}`} />`}
    ${store.data && html`<${Head} project=${project} head=${store.data} title="Events of no project: keys, members, sinks" isStore />`}
    ${ours.data && html`<p class="hint">Keep a head elsewhere: <code>tenure audit verify --head HEAD</code> then finds a log that was cut
      off or written again.</p>`}
  <//>`;
}

function Head({ project, head, title, isStore = false }) {
  const [seal, digest] = head.head.split(":");
  return html`<section class="sealed">
    <h3 class="text">${title}</h3>
    <${Facts} wide of=${[
      ["Last seal", html`${number(Number(seal))}${head.sealed_at && html`, <${Time} at=${head.sealed_at} />`}`],
      ["Head", html`<span class="mono" title=${digest}>${head.head}</span>`],
      ["Not sealed yet", counted(head.unsealed, "event")],
    ]} />
    <${Check} project=${project} isStore=${isStore} title=${title} />
  </section>`;
}

// Reads the whole log, so only on request.
function Check({ project, isStore, title }) {
  const [state, set] = useState({});
  async function check() {
    set({ isBusy: true });
    try {
      set({ report: await get(path(project, "audit", "verify"), isStore ? { store: true } : {}) });
    } catch (error) {
      set({ error });
    }
  }
  const { isBusy = false, report = null, error = null } = state;
  return html`<div class="sealed-check" role="status">
    <button class="button small" disabled=${isBusy} aria-label=${`Check: ${title}`} onClick=${check}>${isBusy ? "Checking…" : "Check"}</button>
    ${error && html`<span class="problem text">${error.message}</span>`}
    ${report?.ok && html`<span class="dot-label"><i class="dot good"></i>
      ${`${counted(report.seals, "seal")}, ${counted(report.sealed, "event")}: unchanged`}</span>`}
    ${report && !report.ok && html`<div><span class="dot-label bad-text"><i class="dot bad"></i>${counted(report.findings.length, "fault")}</span>
      <ul class="findings">${report.findings.slice(0, 20).map((one) => html`<li key=${one} class="problem text">${one}</li>`)}</ul></div>`}
  </div>`;
}

function sealing(project, reload) {
  return {
    title: `Seal the log of ${project}`,
    action: "Seal",
    text: "Its events are chained by hashes from now on, those it has so far included. It cannot be turned off.",
    run: async () => {
      await done(null, "The log is sealed", () => command(path(project, "audit")), { canUndo: false, throws: true });
      reload();
    },
  };
}
