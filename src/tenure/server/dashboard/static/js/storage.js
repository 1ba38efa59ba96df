// Values stored in this browser; without storage, only for this page.
import { base } from "./tenant.js";

const memory = new Map();

// The name of a value of one project: two tenants may have projects of the same name.
export const ofProject = (name, project) => `${base ? `${base}.` : ""}${name}.${project}`;

export function stored(name, fallback = null) {
  try {
    return localStorage.getItem(`tenure.${name}`) ?? fallback;
  } catch {
    return memory.get(name) ?? fallback;
  }
}

export function store(name, value) {
  try {
    localStorage.setItem(`tenure.${name}`, value);
  } catch {
    memory.set(name, value);
  }
}
