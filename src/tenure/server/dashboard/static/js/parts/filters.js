// Filter controls: choices, and text fields that apply after a pause in typing.
import { html, useEffect, useId, useRef, useState } from "../html.js";
import { Icon } from "./icons.js";

// `options`: [[value, label], …].
export function Choice({ label, value, options, onChange }) {
  const id = useId();
  const option = ([one, text]) => html`<option key=${one} value=${one} selected=${one === value}>${text}</option>`;
  return html`<div class="control">
    <label for=${id}>${label}</label>
    <select id=${id} value=${value} onChange=${(event) => onChange(event.target.value)}>${options.map(option)}</select>
  </div>`;
}

const PAUSE = 250; // milliseconds without a key

// `options` here: suggested texts.
export function TextFilter({ label, value, onChange, placeholder = "", options = null }) {
  const id = useId();
  const [text, setText] = useState(value);
  const timer = useRef(null);
  useEffect(() => setText(value), [value]);
  function typed(next, pause) {
    setText(next);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(next.trim()), pause);
  }
  return html`<div class="control">
    <label for=${id}>${label}</label>
    <input id=${id} type="search" value=${text} placeholder=${placeholder} autocomplete="off"
      list=${options && `${id}-list`} onInput=${(event) => typed(event.target.value, PAUSE)}
      onChange=${(event) => typed(event.target.value, 0)} />
    ${options && html`<${Suggestions} id=${`${id}-list`} texts=${options} />`}
  </div>`;
}

// Texts, or [text, label].
export function Suggestions({ id, texts }) {
  const option = ([text, label]) => html`<option key=${text} value=${text}>${label}</option>`;
  return html`<datalist id=${id}>${texts.map((text) => option([text].flat()))}</datalist>`;
}

// Several values, as chips.
export function Chips({ label, values, options, onChange }) {
  const toggle = (one) => onChange(values.includes(one) ? values.filter((v) => v !== one) : [...values, one]);
  const chip = ([one, text]) => html`<button key=${one} type="button" class="chip"
    aria-pressed=${values.includes(one)} onClick=${() => toggle(one)}>${text}</button>`;
  return html`<div class="chips" role="group" aria-label=${label}>${options.map(chip)}</div>`;
}

// One value.
export function Tabs({ label, value, options, onChange }) {
  const tab = ([one, text]) => html`<button key=${one} type="button" aria-pressed=${one === value}
    onClick=${() => onChange(one)}>${text}</button>`;
  return html`<div class="tabs" role="group" aria-label=${label}>${options.map(tab)}</div>`;
}

export function Clear({ onClick }) {
  return html`<button type="button" class="button small ghost" onClick=${onClick}>
    <${Icon} name="close" /> Clear filters
  </button>`;
}
