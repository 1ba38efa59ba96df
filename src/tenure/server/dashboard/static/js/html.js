// Views are htm templates with Preact. Values are inserted as text, never as markup.
import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

export const html = htm.bind(h);
export { Component, createContext, render } from "../vendor/preact.js";
export {
  useContext, useEffect, useErrorBoundary, useId, useLayoutEffect, useMemo, useReducer, useRef, useState,
} from "../vendor/preact-hooks.js";
