// The causes of a pause: each with its author, its times, and the action that ends it.
import { html } from "../html.js";
import { address } from "../router.js";
import { Time } from "../time.js";
import { Actions } from "./task-actions.js";

// `verbs`: ids of the actions that end it.
const CAUSES = {
  person: { label: "A person", verbs: ["resume"] },
  drain: { label: "A drain", verbs: ["resume", "undrain"] },
  lost: { label: "Its holder was lost", verbs: ["resume"] },
  budget: { label: "A budget", verbs: ["override"] },
  question: { label: "A question", verbs: ["answer"] },
  review: { label: "A review", verbs: ["approve", "reject"] },
};

// The ids of the actions that the causes of a task have buttons for.
export const verbsOf = (task) => (task.pauses ?? []).flatMap((pause) => CAUSES[pause.cause]?.verbs ?? []);

export function Pauses({ project, task }) {
  if (!task.pauses?.length) return null;
  return html`<ul class="causes" aria-label="Causes of the pause">
    ${task.pauses.map((pause) => html`<${Cause} key=${`${pause.cause} ${pause.source ?? ""}`} project=${project}
      task=${task} pause=${pause} />`)}
  </ul>`;
}

function Cause({ project, task, pause }) {
  const known = CAUSES[pause.cause] ?? { label: pause.cause, verbs: [] };
  return html`<li class="cause">
    <div>
      <b>${known.label}${pause.reason && ":"}</b> <span class="text">${pause.reason}</span>
      <p class="faint">
        ${pause.by && html`<span class="text">${pause.by.replace(/:$/, "")}</span>, `}
        ${pause.at && html`<${Time} at=${pause.at} />`}
        ${pause.until && html`, ends by itself <${Time} at=${pause.until} />`}
        ${pause.cause === "budget" && html` · <a href=${address(project, "budgets")}>Budgets</a>`}
      </p>
    </div>
    <${Actions} project=${project} task=${task} only=${known.verbs} />
  </li>`;
}
