// A dialog of the browser's own: it keeps the focus, and Escape closes it.
import { html, useId, useLayoutEffect, useRef, useState } from "../html.js";
import { Suggestions } from "./filters.js";

export function Dialog({ title, close, children, wide = false }) {
  const box = useRef(null);
  const id = useId();
  useLayoutEffect(() => {
    box.current.showModal();
  }, []);
  const outside = (event) => event.target === box.current && box.current.close();
  return html`<dialog ref=${box} class=${wide ? "wide" : ""} aria-labelledby=${id} onClose=${close} onClick=${outside}>
    <div class="dialog-body"><h2 id=${id}>${title}</h2>${children}</div>
  </dialog>`;
}

// A form that asks what an action needs. `fields`: { name, label, kind, value, required, hint, options }.
export function Ask({ title, text, fields = [], action, danger = false, run, close }) {
  const [values, set] = useState(() => Object.fromEntries(fields.map(({ name, value }) => [name, value ?? ""])));
  const [isBusy, setBusy] = useState(false);
  async function submit(event) {
    event.preventDefault();
    setBusy(true);
    await run(values);
    setBusy(false);
    close();
  }
  return html`<${Dialog} title=${title} close=${close}>
    <form onSubmit=${submit}>
      ${text && html`<p class="quiet">${text}</p>`}
      ${fields.map((field, index) => html`<${Field} key=${field.name} field=${field} isFirst=${index === 0}
        value=${values[field.name]} set=${(value) => set({ ...values, [field.name]: value })} />`)}
      <div class="dialog-buttons">
        <button type="button" class="button" onClick=${close}>Leave it</button>
        <button type="submit" class=${danger ? "button danger" : "button primary"} disabled=${isBusy}>${action}</button>
      </div>
    </form>
  <//>`;
}

function Field({ field, value, set, isFirst }) {
  const id = useId();
  if (field.kind === "check") {
    const checked = (event) => set(event.target.checked);
    return html`<label class="check">
      <input type="checkbox" checked=${Boolean(value)} onChange=${checked} /> ${field.label}
    </label>`;
  }
  const list = field.options && `${id}-list`;
  const typed = (event) => set(event.target.value);
  const same = { id, value, required: field.required, autofocus: isFirst, onInput: typed };
  return html`<div class="field">
    <label for=${id}>${field.label}</label>
    ${field.kind === "text"
      ? html`<textarea rows="3" ...${same}></textarea>`
      : html`<input type=${field.kind ?? "text"} autocomplete="off" list=${list} ...${same} />`}
    ${list && html`<${Suggestions} id=${list} texts=${field.options} />`}
    ${field.hint && html`<p class="hint">${field.hint}</p>`}
  </div>`;
}
