// A plan file from this computer, or typed: read by the server, shown as what it would do, then applied.
import { command, path, preview } from "../api.js";
import { html, useId, useState } from "../html.js";
import { useOperator } from "../me.js";
import { Dialog } from "../parts/dialogs.js";
import { Icon } from "../parts/icons.js";
import { done } from "../parts/toasts.js";
import { address, go } from "../router.js";
import { counted } from "../format.js";

const EXAMPLE = `name: release
tasks:
  - name: parser
    title: Write the parser
  - name: tests
    title: Test the parser
    depends_on: [parser]
`;
const LARGEST = 4 * 2 ** 20; // bytes; the server's limit is about this

export function PlanUpload({ project }) {
  const [isOpen, open] = useState(false);
  if (!useOperator()) return null;
  return html`<button class="button" onClick=${() => open(true)}><${Icon} name="upload" /> Upload a plan</button>
    ${isOpen && html`<${Upload} project=${project} close=${() => open(false)} />`}`;
}

function Upload({ project, close }) {
  const id = useId();
  const [file, setFile] = useState({ text: "", path: "plan.yaml" });
  const [checked, setChecked] = useState(null); // { plans, findings, outcomes } of the text as it is
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  const change = (next) => {
    setFile(next);
    setChecked(null);
    setProblem(null);
  };
  async function choose(event) {
    const [chosen] = event.target.files;
    if (!chosen) return;
    if (chosen.size > LARGEST) setProblem(new Error(`${chosen.name} is too large for a plan file.`));
    else change({ text: await chosen.text(), path: chosen.name });
  }
  const working = (run) => async (event) => {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await run();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  };
  const check = working(async () => {
    const read = await command(path(project, "plan-files"), file);
    const commands = read.plans.map((plan) => ({ command: "plan", ...plan }));
    setChecked({ ...read, outcomes: commands.length ? await preview(project, commands) : [] });
  });
  const create = working(async () => {
    let made = null;
    for (const plan of checked.plans) {
      made = await done(project, `Applied: ${plan.name}`, () => command(path(project, "dags"), plan), { throws: true });
    }
    close();
    const dag = made?.tasks?.find((task) => task.dag)?.dag;
    if (dag) go(address(project, "dags", dag));
  });
  const isReady = checked && checked.plans.length > 0 && checked.outcomes.every((one) => one.ok);
  return html`<${Dialog} title="Upload a plan" close=${close} wide isKept>
    <form onSubmit=${isReady ? create : check}>
      <div class="field">
        <label for=${`${id}-file`}>File</label>
        <input id=${`${id}-file`} type="file" accept=".yaml,.yml,.json" onChange=${choose} />
      </div>
      <div class="field">
        <label for=${`${id}-text`}>Plan (YAML or JSON)</label>
        <textarea id=${`${id}-text`} class="mono" rows="12" spellcheck="false" required value=${file.text} placeholder=${EXAMPLE}
          aria-describedby=${`${id}-findings`} aria-invalid=${checked?.findings.some(isError) ? "true" : undefined}
          onInput=${(event) => change({ ...file, text: event.target.value })}></textarea>
      </div>
      <div id=${`${id}-findings`} role="status">
        ${checked && html`<${Findings} findings=${checked.findings} />`}
        ${isReady && html`<${Preview} checked=${checked} />`}
        ${checked?.outcomes.filter((one) => !one.ok).map((one) => html`<p class="problem text">
          ${one.message ?? one.detail}${one.hint && html`<br /><span class="faint">${one.hint}</span>`}</p>`)}
      </div>
      ${problem && html`<p class="problem text" role="alert">${problem.message}
        ${problem.hint && html`<br /><span class="faint">${problem.hint}</span>`}</p>`}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick=${close}>Back</button>
        <button class="button primary" disabled=${isBusy || !file.text.trim()}>${isReady ? "Apply" : "Check"}</button>
      </div>
    </form>
  <//>`;
}

const isError = (finding) => finding.level === "error";

function Findings({ findings }) {
  if (!findings.length) return null;
  return html`<ul class="findings">${findings.map((one, n) => html`<li key=${n} class=${isError(one) ? "problem" : "quiet"}>
    <span class="mono">line ${one.line}:</span> <span class="text">${one.message}</span>
    ${one.hint && html` <span class="faint text">${one.hint}</span>`}
  </li>`)}</ul>`;
}

// What applying it would do, by the server's preview.
function Preview({ checked }) {
  return html`<ul class="findings">${checked.plans.map((plan, n) => html`<li key=${n}>
    <b class="text">${plan.title || plan.name}</b>: ${counted(plan.tasks.length, "task")};${" "}
    <span class="quiet text">${checked.outcomes[n].message}</span>
  </li>`)}</ul>`;
}
