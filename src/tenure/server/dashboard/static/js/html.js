// Views are htm templates over Preact. Text put into them is text: nothing here ever makes markup out of data.
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export const html = htm.bind(h);
export { Component, createContext, render } from "../vendor/preact.js";
export {
  useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/preact-hooks.js";
