// A value that notifies its listeners of changes; `useSignal` renders a view again.
import { useLayoutEffect, useState } from "./html.js";

export class Signal {
  #listeners = new Set();

  constructor(value) {
    this.value = value;
  }

  set(value) {
    if (value === this.value) return;
    this.value = value;
    for (const listener of [...this.#listeners]) listener(value);
  }

  listen(listener) {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }
}

// Listens from the first layout: an effect would run a frame later and miss changes before it.
export function useSignal(signal) {
  const [value, draw] = useState(() => [signal.value]);
  useLayoutEffect(() => {
    if (signal.value !== value[0]) draw([signal.value]);
    return signal.listen((next) => draw([next]));
  }, [signal]);
  return signal.value;
}
