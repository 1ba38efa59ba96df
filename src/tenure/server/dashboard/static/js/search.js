// Find a task by any of its words, with suggestions: a combobox of the ARIA practices.
import { get, path } from "./api.js";
import { html, useEffect, useRef, useState } from "./html.js";
import { Icon } from "./parts/icons.js";
import { State } from "./parts/states.js";
import { address, go } from "./router.js";

const PAUSE = 200; // milliseconds without a key
const MOST = 8; // suggestions
const SHORTEST = 2; // characters
const KEY = /^[A-Za-z][A-Za-z0-9]*-\d+\S*$/;

// A key opens its task, a suggestion too; any other text is searched on the page of tasks.
export function Search({ project }) {
  const field = useRef(null);
  const [text, setText] = useState("");
  const [isOpen, open] = useState(false);
  const [at, setAt] = useState(-1); // the suggestion under the cursor
  const found = useFound(project, isOpen ? text.trim() : "");
  useEffect(() => setAt(-1), [found]);
  function leave(href) {
    setText("");
    open(false);
    field.current.blur();
    go(href);
  }
  function submit(event) {
    event.preventDefault();
    const wanted = text.trim();
    if (at >= 0 && found[at]) leave(address(project, "tasks", found[at].key));
    else if (wanted) leave(KEY.test(wanted) ? address(project, "tasks", wanted) : address(project, "tasks", null, { text: wanted }));
  }
  function pressed(event) {
    if (event.key === "Escape") open(false);
    if (!found.length || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
    event.preventDefault();
    const places = found.length + 1; // the field itself is one, before the first suggestion
    const by = event.key === "ArrowDown" ? 1 : -1;
    setAt((now) => ((now + 1 + by + places) % places) - 1);
  }
  const typed = (event) => {
    setText(event.target.value);
    open(true);
  };
  const isShown = isOpen && found.length > 0;
  return html`<form class="search" role="search" onSubmit=${submit}>
    <${Icon} name="search" />
    <input id="search" ref=${field} type="search" role="combobox" aria-label="Find a task" placeholder="Find a task"
      autocomplete="off" value=${text} aria-expanded=${isShown} aria-controls="found" aria-autocomplete="list"
      aria-activedescendant=${isShown && at >= 0 ? `found-${at}` : undefined}
      onInput=${typed} onKeyDown=${pressed} onFocus=${() => open(true)} onBlur=${() => setTimeout(() => open(false), 150)} />
    <kbd class="only-wide" aria-hidden="true">/</kbd>
    <ul id="found" class="found" role="listbox" aria-label="Tasks found" hidden=${!isShown}>${found.map((task, n) => html`
      <li key=${task.id} id=${`found-${n}`} role="option" aria-selected=${n === at}
        onMouseDown=${(event) => event.preventDefault()} onClick=${() => leave(address(project, "tasks", task.key))}>
        <${State} state=${task.state} short /> <span class="mono">${task.ref}</span>
        <span class="text clip">${task.title}</span>
      </li>`)}</ul>
  </form>`;
}

function useFound(project, text) {
  const [found, set] = useState([]);
  useEffect(() => {
    if (text.length < SHORTEST) {
      set([]);
      return undefined;
    }
    const ours = new AbortController();
    const timer = setTimeout(async () => {
      try {
        const asked = { text, limit: MOST, order: "-created_at" };
        set((await get(path(project, "tasks"), asked, ours.signal)).items);
      } catch {
        if (!ours.signal.aborted) set([]);
      }
    }, PAUSE);
    return () => {
      clearTimeout(timer);
      ours.abort();
    };
  }, [project, text]);
  return found;
}
