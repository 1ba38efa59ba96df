// Values stored in this browser; without storage, only for this page.
const memory = new Map();

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
