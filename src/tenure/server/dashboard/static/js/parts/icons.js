// Icons of 16 × 16 lines, in the colour of the text.
import { html } from "../html.js";

const PATHS = {
  overview: "M2 13.5h12M4 11V7m4 4V3m4 8V5.5",
  tasks: "M2.5 4l1.2 1.2L6 3M2.5 8.5l1.2 1.2L6 7.5M2.5 13h3M8.5 4h5M8.5 8.5h5M8.5 13h5",
  dags: "M3.5 5.5a2 2 0 1 0 0-.1M12.5 3.5a1.5 1.5 0 1 0 0-.1M12.5 13a1.5 1.5 0 1 0 0-.1M5.5 5l5.5-1.3M5 6.8l6 5",
  forecast: "M2 13.5h12M2.5 10.5l3-3.5 2.5 2 5-6M10 3h3v3",
  agents: "M5.8 7a2.5 2.5 0 1 0-.1 0M1.8 13.5c.3-2.6 1.8-4 4-4s3.7 1.4 4 4M11 7.5a2 2 0 1 0-.3-4M12 9.6c1.3.4 2 1.7 2.2 3.4",
  pools: "M2.5 3h11v4h-11zM2.5 9h11v4h-11zM5 5h.1M5 11h.1M8 5h3M8 11h3",
  "dead-letters": "M2 4.5h12v8H2zM2 5l6 4.5L14 5M10.5 1.5l3 3m0-3l-3 3",
  messages: "M2 3.5h12v8H7.5L4.5 14v-2.5H2z",
  events: "M1.5 8.5h3l2-5.5 3 10 2-4.5h3",
  budgets: "M2 4.5h10.5a1 1 0 0 1 1 1v6.5a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1zM2 4.5V4a1 1 0 0 1 .8-1l8-1.2v2.7M11 8.8h.1",
  schedules: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 4.5V8l2.3 1.6",
  usage: "M8 2v12M11 4.6C10.4 3.7 9.3 3.4 8 3.4c-1.7 0-3 .7-3 2.2 0 3.2 6.2 1.5 6.2 4.7 0 1.5-1.4 2.3-3.2 2.3-1.6 0-2.8-.6-3.3-1.7",
  delivery: "M2 8l12-5.5-3.5 11-3-4.5zM7.5 9L14 2.5",
  coordinator: "M8 1.8l5.5 2.5v4c0 3-2.3 5-5.5 6-3.2-1-5.5-3-5.5-6v-4zM5.8 8l1.6 1.6L10.4 6.5",
  limits: "M2.5 12a5.5 5.5 0 1 1 11 0M8 12l2.6-4.2M4.6 12h.1M11.4 12h.1",
  projects: "M2 4.5a1 1 0 0 1 1-1h3l1.5 1.8H13a1 1 0 0 1 1 1V12a1 1 0 0 1-1 1H3a1 1 0 0 1-1-1z",
  members: "M5.5 7.5a2.3 2.3 0 1 0-.1 0M1.5 13.5c.3-2.4 1.8-3.8 4-3.8 1.2 0 2.2.4 2.9 1.2M11.5 8.5v5M9 11h5",
  tenants: "M2.5 13.5V3.5h6v10M8.5 6.5h5v7M1.5 13.5h13M5 6h1M5 8.5h1M5 11h1M11 9h.5M11 11h.5",
  todo: "M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8zM2.5 14c.4-2.8 2.6-4.3 5.5-4.3M10 12.5l1.5 1.5 3-3.2",
  upload: "M8 10.5V2.5M4.8 5.5L8 2.5l3.2 3M2.5 11v2.5h11V11",
  move: "M3 5.5h9M9.5 3L12 5.5 9.5 8M13 10.5H4M6.5 8L4 10.5 6.5 13",
  menu: "M2 4h12M2 8h12M2 12h12",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9zM10.5 10.5l3.5 3.5",
  auto: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM8 2v12M8 5h4.5M8 8h6M8 11h4.5",
  light: "M8 11a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM8 1v1.5m0 11V15M1 8h1.5m11 0H15M3 3l1.1 1.1m7.8 7.8L13 13M13 3l-1.1 1.1M4.1 11.9L3 13",
  dark: "M13.5 9.5A6 6 0 0 1 6.5 2.5a6 6 0 1 0 7 7z",
  bell: "M8 2.2a4 4 0 0 0-4 4v2.6L2.8 11.5h10.4L12 8.8V6.2a4 4 0 0 0-4-4zM6.6 13.3a1.5 1.5 0 0 0 2.8 0",
  close: "M4 4l8 8m0-8l-8 8",
  right: "M6 3.5L10.5 8 6 12.5",
  down: "M3.5 6L8 10.5 12.5 6",
  help: "M8 14A6 6 0 1 0 8 2a6 6 0 0 0 0 12zM6.2 6.3c.2-1 1-1.6 1.9-1.6 1 0 1.8.7 1.8 1.6 0 1.3-1.8 1.4-1.8 2.7M8 11.2v.1",
  person: "M8 8a2.8 2.8 0 1 0 0-5.6A2.8 2.8 0 0 0 8 8zM2.8 14c.4-2.8 2.5-4.3 5.2-4.3s4.8 1.5 5.2 4.3",
  pause: "M5.5 3v10M10.5 3v10",
  play: "M4.5 2.8v10.4L13 8z",
  plus: "M8 3v10M3 8h10",
  minus: "M3 8h10",
  fit: "M2.5 6V2.5H6M10 2.5h3.5V6M13.5 10v3.5H10M6 13.5H2.5V10",
};

export function Logo() {
  return html`<svg class="logo" viewBox="0 0 32 32" width="22" height="22" aria-hidden="true" focusable="false">
    <rect class="logo-ground" width="32" height="32" rx="7" /><path class="logo-letter" d="M8 10h16M16 10v13" />
      <circle class="logo-spot" cx="23" cy="22" r="3" />
  </svg>`;
}

export function Icon({ name }) {
  return html`<svg class="icon" viewBox="0 0 16 16" width="16" height="16" aria-hidden="true" focusable="false">
    <path d=${PATHS[name]} fill="none" stroke="currentColor" stroke-width="1.4" stroke-linecap="round"
      stroke-linejoin="round" />
  </svg>`;
}
