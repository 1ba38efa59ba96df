// What an agent of `tenure run` said and did, line by line, while it works and afterwards.
import { get, path } from "../api.js";
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Panel } from "../parts/panels.js";
import { counted, number } from "../format.js";

const PAUSE = 1000; // milliseconds between two requests while the agent works
const SLOW = 5000; // the same while it says nothing
const MOST = 5000; // lines that are kept
const KEPT = "transcript.jsonl"; // the artifact of a claim that has ended
const NEAR = 40; // pixels from the end: then new lines scroll into view

// `claims`: the generations of the task, the last of which is shown at first.
export function Transcript({ project, task, claims }) {
  const last = claims.at(-1)?.generation ?? 0;
  const [chosen, choose] = useState(0);
  const generation = chosen || last;
  const { lines, isLive, cut, error } = useLines(project, task, generation, claims.at(-1)?.state);
  const isKept = claims.some((claim) => claim.artifacts?.some((one) => one.name === KEPT));
  if (!last || !(lines.length || chosen || isKept)) return null;
  const option = ({ generation: n, agent }) =>
    html`<option key=${n} value=${n} selected=${n === generation}>${`generation ${n}, ${agent}`}</option>`;
  return html`<${Panel} title="Transcript">
    <div class="transcript-head">
      ${claims.length > 1 && html`<label><span class="hidden">Generation</span>
        <select onChange=${(event) => choose(Number(event.target.value))}>${[...claims].reverse().map(option)}</select></label>`}
      <span class="dot-label faint"><i class=${`dot ${isLive ? "work" : ""}`}></i>${isLive ? "live" : "ended"}</span>
      <span class="faint">${counted(lines.length, "line")}</span>
    </div>
    ${cut > 0 && html`<p class="faint">${number(cut)} earlier lines are left out.</p>`}
    ${error && html`<p class="problem text">${error.message}</p>`}
    ${lines.length ? html`<${Lines} key=${generation} lines=${lines} />`
      : !error && html`<p class="faint">No transcript of this generation: <code>tenure run</code> writes them.</p>`}
  <//>`;
}

// Grows by the lines that the server has beyond the last ones. `state`: it is read once more when the claim ends.
function useLines(project, task, generation, state) {
  const [shown, show] = useState({ lines: [], isLive: false, cut: 0, error: null });
  const next = useRef(0);
  useEffect(() => {
    next.current = 0;
    show({ lines: [], isLive: false, cut: 0, error: null });
  }, [project, task, generation]);
  useEffect(() => {
    if (!generation) return undefined;
    const ours = new AbortController();
    let timer = null;
    async function read() {
      timer = null;
      if (document.hidden) {
        timer = setTimeout(read, SLOW);
        return;
      }
      try {
        const asked = { generation, after: next.current };
        const answer = await get(path(project, "tasks", task, "transcript"), asked, ours.signal);
        const isMore = answer.next > next.current;
        next.current = answer.next;
        show((before) => {
          const lines = [...before.lines, ...answer.lines];
          const cut = Math.max(0, lines.length - MOST);
          return { lines: lines.slice(cut), isLive: answer.is_live, cut: before.cut + cut, error: null };
        });
        if (isMore) timer = setTimeout(read, answer.lines.length ? PAUSE : 0);
        else if (answer.is_live) timer = setTimeout(read, SLOW / 2);
      } catch (error) {
        if (error.name !== "AbortError" && error.status !== 404) show((before) => ({ ...before, error }));
      }
    }
    read();
    return () => {
      clearTimeout(timer);
      ours.abort();
    };
  }, [project, task, generation, state]);
  return shown;
}

const SIGNS = { errors: "!", runner: "·" };

function Lines({ lines }) {
  const box = useRef(null);
  const isAtEnd = useRef(true);
  useLayoutEffect(() => {
    if (isAtEnd.current) box.current.scrollTop = box.current.scrollHeight;
  }, [lines]);
  const scrolled = () => {
    const { scrollHeight, scrollTop, clientHeight } = box.current;
    isAtEnd.current = scrollHeight - scrollTop - clientHeight < NEAR;
  };
  return html`<ol class="transcript" ref=${box} onScroll=${scrolled} tabindex="0" aria-label="Lines of the transcript">
    ${lines.map((line, n) => html`<li key=${n} class=${`from-${line.from} ${line.text.startsWith("→ ") ? "call" : ""}`}>
      ${SIGNS[line.from] && html`<span class="faint" aria-hidden="true">${SIGNS[line.from]} </span>`}${line.text}
    </li>`)}
  </ol>`;
}
