// A look at the server that stays fresh: loaded at once, and again whenever something has happened.
import { get } from "./api.js";
import { useEffect, useReducer, useRef } from "./html.js";
import { onChange } from "./live.js";

const BEGINNING = { data: null, error: null, isLoading: true };

// { data, error, isLoading, reload }. Data stays while a newer look is on its way or has failed.
// `pause`: at least so many milliseconds between two looks, for the dear ones. No `where`: nothing is asked.
export function useLook(where, params = {}, { pause = 0, isLive = true } = {}) {
  const asked = where && JSON.stringify([where, params]);
  const [state, set] = useReducer((before, after) => ({ ...before, ...after }), BEGINNING);
  const reload = useRef(() => {});

  useEffect(() => {
    if (!asked) return undefined;
    const ours = new AbortController();
    let isBusy = false;
    let isStale = false;
    let later = null;
    set(BEGINNING);

    async function load() {
      if (later) return;
      if (isBusy) {
        isStale = true;
        return;
      }
      isBusy = true;
      const began = performance.now();
      try {
        set({ data: await get(where, params, ours.signal), error: null, isLoading: false });
      } catch (error) {
        if (error.name !== "AbortError") set({ error, isLoading: false });
      }
      isBusy = false;
      if (ours.signal.aborted) return;
      // Never more than a third of the time in looking: a slow server is not made slower.
      const rest = Math.max(pause, 2 * (performance.now() - began));
      later = setTimeout(() => {
        later = null;
        if (isStale) {
          isStale = false;
          load();
        }
      }, rest);
    }

    function refresh() {
      if (later) isStale = true;
      else load();
    }

    reload.current = () => {
      clearTimeout(later);
      later = null;
      load();
    };
    load();
    const stop = isLive ? onChange(refresh) : () => {};
    return () => {
      stop();
      clearTimeout(later);
      ours.abort();
    };
  }, [asked]);

  return { ...state, reload: () => reload.current() };
}
