// Tasks as a table: sortable, with selection by mouse or keyboard.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { bind } from "../shortcuts.js";
import { Progress, State } from "../parts/states.js";
import { TaskLink, address, filter, go } from "../router.js";
import { Time } from "../time.js";
import { NOTHING } from "../format.js";

// The sort field, if any, and the title.
const COLUMNS = [
  [null, "State"], ["key", "Key"], [null, "Title"], [null, "Agent"], [null, "Progress"], ["priority", "Priority"],
  [null, "Attempts"], ["updated_at", "Changed"], ["created_at", "Age"],
];
const MOST_TAGS = 3;

export function TaskTable({ project, items, order, selected, select }) {
  const [cursor, setCursor] = useState(-1);
  const isAll = items.every((task) => selected.has(task.id));
  const selectAll = () => select(new Set(isAll ? [] : items.map((task) => task.id)));
  const toggle = (task) => select((before) => {
    const next = new Set(before);
    if (!next.delete(task.id)) next.add(task.id);
    return next;
  });
  useMoves({ project, items, cursor, setCursor, toggle });
  return html`<div class="scroll panel flush" tabindex="0"><table class="table flow-table tasks-table">
    <thead><tr>
      <th class="check-cell">
        <input type="checkbox" aria-label="Select all shown" checked=${isAll} onChange=${selectAll} />
      </th>
      ${COLUMNS.map(([field, name]) => html`<${Head} key=${name} field=${field} name=${name} order=${order} />`)}
    </tr></thead>
    <tbody>${items.map((task, index) => html`<${Row} key=${task.id} project=${project} task=${task}
      isSelected=${selected.has(task.id)} isCurrent=${index === cursor} toggle=${toggle} />`)}</tbody>
  </table></div>`;
}

const ARROWS = { ascending: "↑", descending: "↓", none: "" };

function Head({ field, name, order }) {
  if (!field) return html`<th class=${name === "Attempts" ? "right" : ""}>${name}</th>`;
  const way = order.startsWith("-") ? "descending" : "ascending";
  const now = order.replace("-", "") === field ? way : "none";
  const sort = () => filter({ order: now === "descending" ? field : `-${field}` });
  return html`<th aria-sort=${now}>
    <button class="sort" onClick=${sort}>${name} <span aria-hidden="true">${ARROWS[now]}</span></button>
  </th>`;
}

function Row({ project, task, isSelected, isCurrent, toggle }) {
  const row = useRef(null);
  useEffect(() => {
    if (isCurrent) row.current.scrollIntoView({ block: "nearest" });
  }, [isCurrent]);
  const look = [isSelected && "selected", isCurrent && "current"].filter(Boolean).join(" ");
  return html`<tr ref=${row} class=${look} aria-current=${isCurrent ? "true" : undefined} data-key=${task.key}>
    <td class="check-cell">
      <input type="checkbox" aria-label=${`Select ${task.key}`} checked=${isSelected} onChange=${() => toggle(task)} />
    </td>
    <td class="fit"><${State} state=${task.state} /></td>
    <td class="fit">
      <${TaskLink} project=${project} task=${task.key} class="mono" title=${task.key}>${task.ref}<//>
    </td>
    <td class="grow title-cell">
      <${TaskLink} project=${project} task=${task.key} class="text title-link">${task.title}<//>
      ${(task.tags ?? []).slice(0, MOST_TAGS).map((tag) => html`${" "}
        <a key=${tag} class="tag text" href=${address(project, "tasks", null, { tag })}>${tag}</a>`)}
    </td>
    <td class=${`text clip-cell ${task.agent ? "" : "none"}`}>${task.agent ?? NOTHING}</td>
    <td class="fit">${task.agent && html`<${Progress} percent=${task.percent} step=${task.step} />`}</td>
    <td class="fit"><span title=${`priority ${task.priority}`}>${task.tier}</span></td>
    <td class="figures" title="attempts, of the maximum">${`${task.attempts}/${task.max_attempts}`}</td>
    <td class="fit faint"><${Time} at=${task.updated_at} brief /></td>
    <td class="fit faint"><${Time} at=${task.created_at} brief /></td>
  </tr>`;
}

// j and k move, x selects, Enter opens.
function useMoves({ project, items, cursor, setCursor, toggle }) {
  const seen = useRef({});
  seen.current = { items, task: items[cursor], toggle };
  useLayoutEffect(() => {
    const move = (by) => () => setCursor((at) => Math.max(0, Math.min(seen.current.items.length - 1, at + by)));
    const withTask = (run) => () => seen.current.task && run(seen.current.task);
    return bind({
      j: { run: move(1), says: "next task" },
      k: { run: move(-1), says: "previous task" },
      x: { run: withTask((task) => seen.current.toggle(task)), says: "select the task" },
      Enter: { run: withTask((task) => go(address(project, "tasks", task.key))), says: "open the task" },
    });
  }, [project]);
}
