// Who one is here, as the server says; null until it has said so.
import { get, me, signedOut } from "./api.js";
import { useSignal } from "./signal.js";

export { me };
const OPERATORS = ["member", "admin", "owner"];
const ADMINS = ["admin", "owner"];

export async function learnMe() {
  try {
    me.set(await get("/me"));
  } catch {
    me.set(null); // not signed in, or the server is away: what is asked next will tell
  }
}

// Whether verbs of persons are worth showing. The server decides; this only spares a refusal.
export function useOperator() {
  const known = useSignal(me);
  return known === null || OPERATORS.includes(known.role);
}

// The same of what only admins may do: budgets, schedules, triggers.
export function useAdmin() {
  const known = useSignal(me);
  return known === null || ADMINS.includes(known.role);
}

export function useWriter() {
  return useSignal(me)?.role !== "viewer";
}

signedOut.listen((isOut) => {
  if (isOut) me.set(null);
  else learnMe();
});
