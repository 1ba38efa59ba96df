// The messages of the project: sender, recipients, text, readers; and a form to write.
import { command, path } from "../api.js";
import { html, useState } from "../html.js";
import { stored } from "../storage.js";
import { useQuery } from "../query.js";
import { me, useWriter } from "../me.js";
import { Markdown } from "../parts/markdown.js";
import { Empty, Loaded } from "../parts/notices.js";
import { done } from "../parts/toasts.js";
import { filter, useRoute } from "../router.js";
import { Time } from "../time.js";

export function Messages({ project }) {
  const mail = useQuery(path(project, "messages"));
  const { query } = useRoute();
  return html`
    <header class="page-head"><h1>Messages</h1></header>
    <div class="columns side">
      <${Loaded} of=${mail} what="Loading the messages">${({ items }) => items.length
        ? html`<ol class="mail">${items.map((one) => html`<${Letter} key=${one.id} letter=${one} />`)}</ol>`
        : html`<${Empty} title="No messages">
            <p>Messages between agents and people appear here.</p>
            <p>The answer to each heartbeat has the number of messages that wait for the agent.</p>
          <//>`}<//>
      <${Write} project=${project} to=${query.get("to") ?? "@all"} />
    </div>`;
}

function Letter({ letter }) {
  const { read_by: readers = [], recipients = [] } = letter;
  return html`<li class="letter">
    <div class="letter-head">
      <b class="text">${letter.from}</b> <span class="faint">to</span> <span class="text">${letter.to}</span>
      ${letter.type !== "chat" && html`<span class="tag">${letter.type}</span>`}
      <span class="spacer"></span>
      <span class="faint text" title=${readers.join(", ")}>
        ${readers.length ? `read by ${readers.length} of ${recipients.length}` : "unread"}
      </span>
      <span class="faint"><${Time} at=${letter.sent_at} /></span>
    </div>
    <${Markdown} text=${letter.text} />
    <button class="button small ghost" onClick=${() => filter({ to: letter.from })}>Reply</button>
  </li>`;
}

function Write({ project, to }) {
  const agents = useQuery(path(project, "agents"), {}, { pause: 5000 });
  const [text, setText] = useState("");
  if (!useWriter()) return html`<p class="hint">Your role may read messages, but not write.</p>`;
  const names = ["@all", "@leader", ...(agents.data?.items ?? []).map((agent) => agent.name)];
  const sender = me.value?.user || stored("name", "").trim() || "dashboard";
  async function submit(event) {
    event.preventDefault();
    const outcome = await done(project, "Sent", () => command(path(project, "messages"), { sender, to, text }));
    if (outcome?.ok) setText("");
  }
  return html`<form class="panel write" onSubmit=${submit}>
    <h2>Write</h2>
    <div class="field">
      <label for="to">To</label>
      <input id="to" value=${to} list="to-list" autocomplete="off" required
        onInput=${(event) => filter({ to: event.target.value })} />
      <datalist id="to-list">${names.map((name) => html`<option key=${name} value=${name} />`)}</datalist>
      <p class="hint">An agent, <code>@all</code> or <code>@leader</code>.</p>
    </div>
    <div class="field">
      <label for="text">Message</label>
      <textarea id="text" rows="5" required value=${text} onInput=${(event) => setText(event.target.value)}></textarea>
      <p class="hint">Sent as <b class="text">${sender}</b>.</p>
    </div>
    <button class="button primary" disabled=${!text.trim()}>Send</button>
  </form>`;
}
