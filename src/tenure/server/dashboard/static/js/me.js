// The current principal; null until the server has returned it.
import { get, me, signedOut } from "./api.js";
import { connection } from "./live.js";
import { useSignal } from "./signal.js";

export { me };
const OPERATORS = ["member", "admin", "owner"];
const ADMINS = ["admin", "owner"];

export async function learnMe() {
  try {
    me.set(await get("/me"));
  } catch {
    me.set(null); // not signed in, or the server is unavailable: the next request shows which
  }
}

// Whether to show actions of operators. The server decides; this only avoids a refusal.
export function useOperator() {
  const known = useSignal(me);
  return known === null || OPERATORS.includes(known.role);
}

// The same for actions of admins: budgets, schedules, triggers.
export function useAdmin() {
  const known = useSignal(me);
  return known === null || ADMINS.includes(known.role);
}

export function useWriter() {
  return useSignal(me)?.role !== "viewer";
}

// True: of all projects. Null until it is known: a request that the key does not cover would be refused.
export function useOfAllProjects() {
  const known = useSignal(me);
  return known && !known.projects?.length;
}

connection.listen((state) => {
  if (state === "live" && me.value === null) learnMe();
});
signedOut.listen((isOut) => {
  if (isOut) me.set(null);
  else learnMe();
});
