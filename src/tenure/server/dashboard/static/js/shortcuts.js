// Keyboard shortcuts: one key, or `g` and a letter for a page. Inactive in text fields.
import { Signal } from "./signal.js";

const SEQUENCE = 1200; // milliseconds between `g` and its letter
export const helping = new Signal(false);

const bindings = new Map(); // key → { run, says }
let wentAt = -Infinity; // when `g` was pressed

export function bind(keys) {
  for (const [key, binding] of Object.entries(keys)) bindings.set(key, binding);
  return () => {
    for (const [key, binding] of Object.entries(keys)) if (bindings.get(key) === binding) bindings.delete(key);
  };
}

export const bound = () => [...bindings].map(([key, { says }]) => [key, says]);

const TYPED = "input:not([type=checkbox]), textarea, select, dialog";
const isIn = (event, selector) => event.target instanceof Element && event.target.closest(selector) !== null;

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && isIn(event, "input")) event.target.blur();
  if (event.metaKey || event.ctrlKey || event.altKey || isIn(event, TYPED)) return;
  const key = performance.now() - wentAt < SEQUENCE ? `g ${event.key}` : event.key;
  wentAt = key === "g" ? performance.now() : -Infinity;
  const binding = bindings.get(key);
  if (!binding) return;
  if (key === "Enter" && isIn(event, "a, button, summary")) return;
  event.preventDefault();
  binding.run();
});
