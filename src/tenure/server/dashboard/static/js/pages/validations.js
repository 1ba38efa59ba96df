// Results that are not accepted yet: reviews by a person, checks by validators, and what waits to be landed.
import { path } from "../api.js";
import { html } from "../html.js";
import { useQuery } from "../query.js";
import { Markdown } from "../parts/markdown.js";
import { Empty, Loaded } from "../parts/notices.js";
import { Value } from "../parts/values.js";
import { TaskLink } from "../router.js";
import { number } from "../format.js";
import { Actions } from "./task-actions.js";
import { Artifacts, Verdict } from "./verdicts.js";

const MOST = 100;

export function Validations({ project }) {
  const checks = useQuery(path(project, "validations"), { limit: MOST });
  return html`<${Loaded} of=${checks} what="Loading the validations">${({ items }) => items.length
    ? html`<ul class="letters">${sorted(items).map((check) => html`<${Check} key=${check.id} project=${project}
        check=${check} />`)}</ul>
        ${items.length === MOST && html`<p class="note">The ${number(MOST)} oldest.</p>`}`
    : html`<${Empty} title="No results wait for validation or landing">
        <p>A task can define how its output is validated: by a schema, tests, a model, or a review.</p>
        <pre class="terminal" tabindex="0">tenure add "Write the chapter" --validate review</pre>
      <//>`}<//>`;
}

// Reviews first, then the oldest.
const sorted = (checks) => [...checks].sort((a, b) => Number(b.state === "review") - Number(a.state === "review"));

function Check({ project, check }) {
  const results = useQuery(path(project, "tasks", check.key, "results"), {}, { isLive: false });
  const shown = useQuery(path(project, "tasks", check.key), {}, { isLive: false });
  const result = results.data?.items.find((one) => one.id === check.result);
  const put = (shown.data?.artifacts ?? []).filter((one) => one.generation === check.generation);
  return html`<li class="panel check-card" data-key=${check.key}>
    <div class="dead-head">
      <${TaskLink} project=${project} task=${check.key} class="mono strong" />
      <span class="quiet text clip">${shown.data?.title}</span>
    </div>
    <${Verdict} check=${check} />
    ${result && html`<p class="faint text">${`submitted by ${result.agent}, generation ${result.generation}`}</p>
      ${result.summary && html`<${Markdown} text=${result.summary} />`}
      <details><summary>Submitted result</summary><${Value} value=${result.data} /></details>`}
    <${Artifacts} project=${project} task=${check.key} artifacts=${put} />
    <${Actions} project=${project} task=${{ key: check.key, state: "validating", validation: check }} only=${["approve", "reject"]} />
  </li>`;
}
