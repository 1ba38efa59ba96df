// A query that stays fresh: loaded at once, and again after each change.
import { measured } from "./api.js";
import { useEffect, useReducer, useRef } from "./html.js";
import { onChange } from "./live.js";

const PAUSE = 1000; // milliseconds between two requests of one query, if it says nothing else
const SHARE = 10; // pauses are this many times as long as the request was,
const LONGEST = 2000; // and at most this many milliseconds;
const SPARED = 400; // or this many times as long as the server's processor worked for it: 2.5 ms a second,
const OVERHEAD = 1.5; // milliseconds of the server's processor for any request, which its answer does not count
const COSTLIEST = 20_000; // and for that at most this many milliseconds
const BEGINNING = { data: null, error: null, isLoading: true };

// { data, error, isLoading, reload }. Data stays while a newer request runs or has failed.
// `pause`: at least this many milliseconds between two requests, for expensive queries. No `where`: no request.
// `isSpared`: of a page that stays open for hours. The more it costs the server, the less often it is asked.
// `parts`: so many spared queries share what the page may cost.
// `follows`: a row of a list. The query is repeated when the row changes, not after other changes: a removed row leaves
// the list, and is not requested again.
// `concerns`: of a part of a page. The query is repeated after an event that this is true of, not after all others.
export function useQuery(where, params = {}, { pause = PAUSE, isLive = true, isSpared = false, parts = 1,
  follows = null, concerns = null } = {}) {
  const asked = where && JSON.stringify([where, params]);
  const [state, set] = useReducer((before, after) => ({ ...before, ...after }), BEGINNING);
  const reload = useRef(() => {});
  const refresh = useRef(() => {});
  const least = useRef(pause); // it may change while the query stays
  least.current = pause;

  useEffect(() => {
    if (!asked) return undefined;
    const ours = new AbortController();
    let isBusy = false;
    let isStale = false;
    let isUrgent = false; // asked for while a request was under way
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
      let cost = 0;
      try {
        const answer = await measured(where, params, ours.signal);
        cost = answer.cost;
        set({ data: answer.value, error: null, isLoading: false });
      } catch (error) {
        if (error.name !== "AbortError") set({ error, isLoading: false });
      }
      isBusy = false;
      if (ours.signal.aborted) return;
      // Requests take a small part of the time: a slow server is not made slower by those who look at it.
      const slow = Math.min(LONGEST, SHARE * (performance.now() - began));
      const spared = isSpared ? Math.min(COSTLIEST, SPARED * parts * (cost + OVERHEAD)) : 0;
      const rest = isUrgent ? 0 : Math.max(least.current, slow, spared);
      isUrgent = false;
      later = setTimeout(() => {
        later = null;
        if (isStale) {
          isStale = false;
          load();
        }
      }, rest);
    }

    refresh.current = () => {
      if (later) isStale = true;
      else load();
    };

    reload.current = () => {
      clearTimeout(later);
      later = null;
      isUrgent = isBusy;
      load();
    };
    load();
    const stop = isLive && !follows ? onChange((events, isOurs) => {
      if (isOurs) reload.current();
      else if (!concerns || !events || events.some(concerns)) refresh.current();
    }) : () => {};
    return () => {
      stop();
      clearTimeout(later);
      ours.abort();
    };
  }, [asked]);

  const row = follows && JSON.stringify(follows); // each reading of the list makes new objects, mostly of equal rows
  useEffect(() => {
    if (row && state.data !== null) refresh.current();
  }, [row]);

  return { ...state, reload: () => reload.current() };
}
