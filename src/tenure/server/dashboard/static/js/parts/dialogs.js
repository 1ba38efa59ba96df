// The browser's dialog element: it traps the focus, and Escape closes it.
import { html, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { Suggestions } from "./filters.js";

// `isKept`: a click outside does not close it.
export function Dialog({ title, close, children, wide = false, isKept = false }) {
  const box = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    box.current.showModal();
  }, []);
  const outside = (event) => !isKept && event.target === box.current && box.current.close();
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${id} onClose=${close} onClick=${outside}>
    <div class="dialog-body"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}

// A form for the inputs of an action.
// `fields`: { name, label, kind, value, required, pattern, min, step, hint, options, when }.
// `when`: whether the field is shown, depending on the other values; a hidden field is not sent. `options` may depend
// on them too; they are suggestions, or for a `choice` the only values.
// An error that `run` throws is shown, and the form stays open with its values.
export function Ask({ title, text, fields = [], action, danger = false, run, close }) {
  const [values, set] = useState(() => Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ""])));
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const asked = fields.filter((field) => field.when?.(values) ?? true);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await run(Object.fromEntries(asked.map(({ name }) => [name, values[name]])));
      close();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  }
  return html`<${Dialog} title=${title} close=${close}>
    <form onSubmit=${submit}>
      ${text && html`<p class="quiet">${text}</p>`}
      ${asked.map((field, index) => html`<${Field} key=${field.name} field=${field} isFirst=${index === 0}
        options=${typeof field.options === "function" ? field.options(values) : field.options}
        value=${values[field.name]} set=${(value) => set({ ...values, [field.name]: value })} />`)}
      ${problem && html`<p class="problem text" role="alert">${problem.message}
        ${problem.hint && html`<br /><span class="faint">${problem.hint}</span>`}</p>`}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick=${close}>Back</button>
        <button type="submit" class=${danger ? "button danger" : "button primary"} disabled=${isBusy}>${action}</button>
      </div>
    </form>
  <//>`;
}

function Field({ field, options, value, set, isFirst }) {
  const id = useId();
  if (field.kind === "check") {
    const checked = (event) => set(event.target.checked);
    return html`<label class="check">
      <input type="checkbox" checked=${Boolean(value)} onChange=${checked} /> ${field.label}
    </label>`;
  }
  const list = options && field.kind !== "choice" ? `${id}-list` : null;
  const typed = (event) => set(event.target.value);
  const same = { id, value, required: field.required, autofocus: isFirst, onInput: typed };
  const input = { type: field.kind ?? "text", autocomplete: "off", list, pattern: field.pattern, min: field.min, step: field.step };
  const option = ([one, said]) => html`<option key=${one} value=${one} selected=${one === value}>${said}</option>`;
  return html`<div class="field">
    <label for=${id}>${field.label}</label>
    ${field.kind === "text" && html`<textarea rows="3" ...${same}></textarea>`}
    ${field.kind === "choice" && html`<select ...${same}>${options.map(option)}</select>`}
    ${!["text", "choice"].includes(field.kind) && html`<input ...${input} ...${same} />`}
    ${list && html`<${Suggestions} id=${list} texts=${options} />`}
    ${field.hint && html`<p class="hint">${field.hint}</p>`}
  </div>`;
}
