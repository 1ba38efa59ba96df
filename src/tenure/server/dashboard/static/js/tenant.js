// The tenant of this page: the one of its address, /t/NAME/…; without that, the one that the server has returned.
// Every request names it, so that a sign-in to another tenant in a second tab never changes whose tasks this tab shows.
import { Signal } from "./signal.js";

export const HOME = "local";
const IN_PATH = /^\/t\/([^/]*)/;

export const tenantIn = (pathname) => IN_PATH.exec(pathname)?.[1] ?? null;
export const named = tenantIn(location.pathname); // by the address; another tenant is another page load
export const base = named === null ? "" : `/t/${named}`;
export const isUnknown = new Signal(false); // to this caller there is no such tenant

let returned = null;

// The tenant of /me. The address of another than the home tenant has its name.
export function learnTenant(name) {
  if (named !== null || name === returned) return;
  if (name !== HOME) open(name, location.pathname + location.search);
  returned = name;
}

export function forgetTenant() {
  returned = null;
}

export function tenantHeader() {
  const name = named ?? returned;
  return name === null ? {} : { "Tenure-Tenant": name };
}

// With its name for the home tenant too: without one, the server takes the last sign-in of this browser.
export const addressOf = (name, rest = "/") => `/t/${name}${rest}`;

// Loads the page again: nothing of one tenant stays in memory for another.
export function open(name, rest = "/") {
  location.assign(addressOf(name, rest));
}
