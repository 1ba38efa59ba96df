// A new secret, shown once.
import { html, useRef, useState } from "../html.js";
import { Dialog } from "./dialogs.js";

export function Secret({ name, secret, hint, close }) {
  const field = useRef(null);
  const [status, setStatus] = useState("");
  async function copy() {
    field.current.select();
    try {
      // Without TLS a browser has no clipboard: the older command still copies the selected text.
      if (navigator.clipboard) await navigator.clipboard.writeText(secret);
      else if (!document.execCommand("copy")) throw new Error();
      setStatus("Copied.");
    } catch {
      setStatus("Press Ctrl+C to copy the selected text.");
    }
  }
  return html`<${Dialog} title=${`Secret of ${name}`} close=${close} isKept>
    <div class="field">
      <label for="secret">Secret</label>
      <input id="secret" class="mono" ref=${field} readonly value=${secret} autocomplete="off" spellcheck="false" />
      ${hint && html`<p class="hint text">${hint}</p>`}
    </div>
    <p role="status" class="quiet">${status}</p>
    <div class="dialog-buttons">
      <button class="button" onClick=${close}>Close</button>
      <button class="button primary" autofocus onClick=${copy}>Copy</button>
    </div>
  <//>`;
}
