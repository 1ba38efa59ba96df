// The sign-in page.
import { signIn, signedIn } from "../api.js";
import { html, useEffect, useState } from "../html.js";
import { Logo } from "../parts/icons.js";
import { named, open } from "../tenant.js";

// `cancel`: the page beside which one signs in to another tenant; null: nobody is signed in.
export function Login({ cancel = null }) {
  const [key, setKey] = useState("");
  const [problem, setProblem] = useState(null);
  const [isBusy, setBusy] = useState(false);
  // The link of `tenure serve` has the token after the #, which browsers do not send to servers.
  useEffect(() => {
    if (!location.hash.startsWith("#tnl_")) return;
    const token = location.hash.slice(1);
    history.replaceState(null, "", location.pathname);
    enter(token);
  }, []);
  async function submit(event) {
    event.preventDefault();
    await enter(key.trim());
  }
  async function enter(shown) {
    setBusy(true);
    setProblem(null);
    try {
      const { tenant } = await signIn(shown, { isAnother: cancel !== null });
      if (cancel) open(tenant);
      else signedIn();
    } catch (error) {
      setProblem(error);
    }
    setBusy(false);
  }
  return html`<main id="main" class="login" tabindex="-1">
    <form class="login-box" onSubmit=${submit} method="post" action="/login">
      <h1><${Logo} /> tenure</h1>
      ${named !== null && !cancel && html`<p>Sign in to the tenant <strong class="text">${named}</strong>.</p>`}
      ${cancel ? html`<p class="quiet">A key opens the tenant that it is of. You stay signed in here.</p>`
        : html`<p class="quiet">Sign in to this server. On your own machine, open the link that <code>tenure serve</code> printed. For
        other servers, ask the operator for a key; <code>tenure key create</code> creates one.</p>`}
      <div class="field">
        <label for="key">Key</label>
        <input id="key" name="key" type="password" autocomplete="current-password" spellcheck="false" autofocus required
          value=${key} aria-describedby=${problem ? "login-problem" : undefined} aria-invalid=${Boolean(problem)}
          onInput=${(event) => setKey(event.target.value)} />
      </div>
      ${problem && html`<p id="login-problem" class="problem" role="alert">${messageOf(problem)}</p>`}
      <button class="button primary wide" disabled=${isBusy || !key.trim()}>Sign in</button>
      ${cancel && html`<button type="button" class="button wide" onClick=${cancel}>Back</button>`}
    </form>
  </main>`;
}

function messageOf(problem) {
  if (problem.status === 401 || problem.status === 403) return "The key is unknown, revoked or expired.";
  if (problem.status === 404 && problem.code) return "The key does not open this tenant.";
  if (problem.status === 404 || problem.status === 405) return "This server does not support sign-in with a key.";
  return problem.message;
}
