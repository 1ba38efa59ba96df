// Light, dark, or as the system has it.
import { keep, kept } from "./kept.js";
import { Signal } from "./signal.js";

export const THEMES = ["auto", "light", "dark"];
export const theme = new Signal(THEMES.includes(kept("theme")) ? kept("theme") : "auto");
const dark = matchMedia("(prefers-color-scheme: dark)");

// What is really shown: charts are drawn anew when it changes.
export const shown = new Signal(resolved());

function resolved() {
  if (theme.value !== "auto") return theme.value;
  return dark.matches ? "dark" : "light";
}

export function choose(name) {
  keep("theme", name);
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.set(name);
  shown.set(resolved());
}

export function chooseNext() {
  choose(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]);
}

dark.addEventListener("change", () => shown.set(resolved()));

// A colour of the style sheet as a canvas understands it.
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
