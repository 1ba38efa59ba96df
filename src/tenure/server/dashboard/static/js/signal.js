// A value that tells its listeners when it changes; `useSignal` draws a view anew.
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

// Listens from the moment that the view is there: an effect would come a frame later, and miss what happens before.
export function useSignal(signal) {
  const [value, draw] = useState(() => [signal.value]);
  useLayoutEffect(() => {
    if (signal.value !== value[0]) draw([signal.value]);
    return signal.listen((next) => draw([next]));
  }, [signal]);
  return signal.value;
}
