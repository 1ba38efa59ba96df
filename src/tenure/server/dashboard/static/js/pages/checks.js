// Results that wait for a verdict: what a person can decide here, and what validators have before them.
import { path } from "../api.js";
import { html } from "../html.js";
import { useLook } from "../look.js";
import { Empty, Looked } from "../parts/notices.js";
import { Value } from "../parts/values.js";
import { TaskLink } from "../router.js";
import { number } from "../words.js";
import { Actions } from "./acting.js";
import { Artifacts, Verdict } from "./verdicts.js";

const MOST = 100;

export function Checks({ project }) {
  const checks = useLook(path(project, "validations"), { limit: MOST });
  return html`<${Looked} of=${checks} what="Loading what is checked">${({ items }) => items.length
    ? html`<ul class="letters">${sorted(items).map((check) => html`<${Check} key=${check.id} project=${project}
        check=${check} />`)}</ul>
        ${items.length === MOST && html`<p class="note">The ${number(MOST)} that wait longest.</p>`}`
    : html`<${Empty} title="Nothing waits for a verdict">
        <p>A task can say how its output is judged: by a schema, tests, a judge, or by you.</p>
        <pre class="terminal">tenure add "Write the chapter" --validate review</pre>
      <//>`}<//>`;
}

// What waits for a person first; else the longest first, as they came.
const sorted = (checks) => [...checks].sort((a, b) => Number(b.state === "review") - Number(a.state === "review"));

function Check({ project, check }) {
  const results = useLook(path(project, "tasks", check.key, "results"), {}, { isLive: false });
  const shown = useLook(path(project, "tasks", check.key), {}, { isLive: false });
  const result = results.data?.items.find((one) => one.id === check.result);
  const put = (shown.data?.artifacts ?? []).filter((one) => one.generation === check.generation);
  return html`<li class="panel check-card" data-key=${check.key}>
    <div class="dead-head">
      <${TaskLink} project=${project} task=${check.key} class="mono strong" />
      <span class="quiet text clip">${shown.data?.title}</span>
    </div>
    <${Verdict} check=${check} />
    ${result && html`<p class="faint text">${`handed in by ${result.agent}, generation ${result.generation}`}</p>
      ${result.summary && html`<p class="text">${result.summary}</p>`}
      <details><summary>What was handed in</summary><${Value} value=${result.data} /></details>`}
    <${Artifacts} project=${project} task=${check.key} artifacts=${put} />
    <${Actions} project=${project} task=${{ key: check.key, state: "validating" }} only=${["approve", "reject"]} />
  </li>`;
}
