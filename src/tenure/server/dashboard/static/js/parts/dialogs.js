// The browser's dialog element: it traps the focus, and Escape closes it.
import { html, useEffect, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { Field, fieldOf, sentBy } from "./fields.js";

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
// `fields`: { name, label, kind, value, required, pattern, min, step, hint, options, when, isMore, says }.
// `when`: whether the field is shown, depending on the other values; a hidden field is not sent. `options` may depend
// on them too; they are suggestions, or for a `choice` the only values. `isMore`: below "More fields". `says`: other
// names of the field in errors. Kinds are those of parts/fields.js.
// An error that `run` throws is shown beside its field, and the form stays open with its values.
export function Ask({ title, text, fields = [], action, danger = false, wide = false, run, close }) {
  const [values, set] = useState(() => Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ""])));
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState(null);
  const form = useRef(null);
  const asked = fields.filter((field) => field.when?.(values) ?? true);
  const wrong = problem && fieldOf(problem, asked, values);
  useEffect(() => {
    if (wrong) form.current.querySelector("[aria-invalid=true]")?.focus();
  }, [problem]);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    setProblem(null);
    try {
      await run(Object.fromEntries(asked.map((field) => [field.name, sentBy(field, values[field.name])])), values);
      close();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  }
  const shown = (field, index) => html`<${Field} key=${field.name} field=${field} isFirst=${index === 0}
    options=${typeof field.options === "function" ? field.options(values) : field.options}
    problem=${wrong === field ? problem : null}
    value=${values[field.name]} set=${(value) => set((before) => ({ ...before, [field.name]: value }))} />`;
  const more = asked.filter((field) => field.isMore);
  return html`<${Dialog} title=${title} close=${close} wide=${wide} isKept=${fields.length > 2}>
    <form ref=${form} onSubmit=${submit}>
      ${text && html`<p class="quiet">${text}</p>`}
      <div class=${wide ? "form-grid" : ""}>${asked.filter((field) => !field.isMore).map(shown)}</div>
      ${more.length > 0 && html`<details class="more-fields" open=${more.includes(wrong)}>
        <summary>More fields</summary><div class="form-grid">${more.map((field) => shown(field, -1))}</div>
      </details>`}
      ${problem && !wrong && html`<p class="problem text" role="alert">${problem.message}
        ${problem.hint && html`<br /><span class="faint">${problem.hint}</span>`}</p>`}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick=${close}>Back</button>
        <button type="submit" class=${danger ? "button danger" : "button primary"} disabled=${isBusy}>${action}</button>
      </div>
    </form>
  <//>`;
}
