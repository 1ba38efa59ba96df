// What this browser remembers; without storage it is forgotten with the page.
const memory = new Map();

export function kept(name, otherwise = null) {
  try {
    return localStorage.getItem(`tenure.${name}`) ?? otherwise;
  } catch {
    return memory.get(name) ?? otherwise;
  }
}

export function keep(name, value) {
  try {
    localStorage.setItem(`tenure.${name}`, value);
  } catch {
    memory.set(name, value);
  }
}
