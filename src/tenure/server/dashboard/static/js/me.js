// The current principal; null until the server has returned it.
import { get, me, signedOut } from "./api.js";
import { connection } from "./live.js";
import { Signal, useSignal } from "./signal.js";
import { isUnknown, learnTenant } from "./tenant.js";

export { me };
export const signsIn = new Signal(false); // to another tenant, beside those of this browser
const OPERATORS = ["member", "admin", "owner"];
const ADMINS = ["admin", "owner"];

export async function learnMe() {
  try {
    const known = await get("/me");
    learnTenant(known.tenant);
    me.set(known);
    isUnknown.set(false);
  } catch (error) {
    if (error.status === 404) isUnknown.set(true);
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
