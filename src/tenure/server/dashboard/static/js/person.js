// The current user: from the key, or a chosen name on an open server.
import { signOut } from "./api.js";
import { html, useRef, useState } from "./html.js";
import { store, stored } from "./storage.js";
import { learnMe, me, signsIn } from "./me.js";
import { Dialog } from "./parts/dialogs.js";
import { Icon } from "./parts/icons.js";
import { Facts } from "./parts/panels.js";
import { useSignal } from "./signal.js";

export function Person() {
  const [isOpen, open] = useState(false);
  const known = useSignal(me);
  const name = known?.user ?? known?.agent ?? stored("name");
  const close = () => open(false);
  return html`
    <button class="button ghost" aria-label="Your name" title=${name ? `You are ${name}` : "Set your name"}
      onClick=${() => open(true)}><${Icon} name="person" /></button>
    ${isOpen && known?.key && html`<${SignedIn} known=${known} close=${close} />`}
    ${isOpen && !known?.key && html`<${Naming} close=${close} />`}`;
}

function SignedIn({ known, close }) {
  const another = () => {
    close();
    signsIn.set(true);
  };
  return html`<${Dialog} title=${`You are ${known.user ?? known.agent ?? known.key}`} close=${close}>
    <${Facts} of=${[["Role", known.role], ["Tenant", known.tenant], ["Key", known.key], ["Projects", known.projects?.join(", ")]]} />
    <div class="dialog-buttons">
      <button class="button" onClick=${signOut}>Sign out</button>
      <button class="button" onClick=${another}>Sign in to another tenant</button>
      <button class="button primary" autofocus onClick=${close}>Close</button>
    </div>
  <//>`;
}

function Naming({ close }) {
  const field = useRef(null);
  function submit(event) {
    event.preventDefault();
    store("name", field.current.value.trim());
    learnMe();
    close();
  }
  return html`<${Dialog} title="Your name" close=${close}><form onSubmit=${submit}>
    <div class="field">
      <label for="name">Name</label>
      <input id="name" ref=${field} defaultValue=${stored("name", "")} autocomplete="nickname" autofocus maxlength="80" />
      <p class="hint">The log shows it with your actions.</p>
    </div>
    <div class="dialog-buttons">
      <button type="button" class="button" onClick=${close}>Cancel</button>
      <button class="button primary">Save</button>
    </div>
  </form><//>`;
}
