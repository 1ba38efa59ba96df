// The theme: light, dark, or the system's.
import { store, stored } from "./storage.js";
import { Signal } from "./signal.js";

export const THEMES = ["auto", "light", "dark"];
export const theme = new Signal(THEMES.includes(stored("theme")) ? stored("theme") : "auto");
const dark = matchMedia("(prefers-color-scheme: dark)");

// The effective theme: charts are drawn again when it changes.
export const shown = new Signal(resolved());

function resolved() {
  if (theme.value !== "auto") return theme.value;
  return dark.matches ? "dark" : "light";
}

export function choose(name) {
  store("theme", name);
  if (name === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = name;
  theme.set(name);
  shown.set(resolved());
}

export function chooseNext() {
  choose(THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length]);
}

dark.addEventListener("change", () => shown.set(resolved()));

// A colour of the style sheet, for a canvas.
export function colour(name) {
  const probe = document.createElement("span");
  probe.style.color = `var(${name})`;
  document.body.append(probe);
  const value = getComputedStyle(probe).color;
  probe.remove();
  return value;
}
