// Formats values, with the same words and signs as the command line.
export const NOTHING = "–";

export const MARKS = {
  created: "✎", pending: "·", ready: "○", claimed: "◐", running: "●", paused: "‖", validating: "◇", completed: "✓",
  retrying: "↻", dead_lettered: "✗", cancelled: "–",
};
export const STATES = Object.keys(MARKS);
export const OPEN = STATES.filter((state) => state !== "completed" && state !== "cancelled");
export const HELD = ["claimed", "running"];

const SPOKEN = { created: "draft", dead_lettered: "dead letter" };
export const inWords = (state) => SPOKEN[state] ?? state;

export function counted(count, word, plural = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : plural}`;
}

const grouped = new Intl.NumberFormat("en-GB");
export const number = (value) => (value === null || value === undefined ? NOTHING : grouped.format(value));

export function briefNumber(value) {
  for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (value >= size) return `${(value / size).toFixed(value >= size * 100 ? 0 : 1)} ${unit}`;
  }
  return number(value);
}

const cents = new Intl.NumberFormat("en-GB", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

// Two decimals from one cent on, else two significant digits.
export function dollars(text) {
  if (text === null || text === undefined) return NOTHING;
  const value = Number(text);
  if (value < 0) return `-${dollars(-value)}`;
  if (value === 0) return "$0";
  return value >= 0.01 ? `$${cents.format(value)}` : `$${value.toPrecision(2)}`;
}

// An amount of a budget: dollars as decimal text, tokens as a number.
export const amount = (currency, value) => (currency === "usd" ? dollars(value) : `${signed(value)} tokens`);
const signed = (value) => (value < 0 ? `-${briefNumber(-value)}` : briefNumber(value));

export function bytes(size) {
  for (const [unit, name] of [[2 ** 30, "GB"], [2 ** 20, "MB"], [2 ** 10, "kB"]]) {
    if (size >= unit) return `${(size / unit).toFixed(size >= unit * 100 ? 0 : 1)} ${name}`;
  }
  return `${number(size)} B`;
}

// A duration in one or two units: `0.4 s`, `12 s`, `5 min`, `3 h 20 min`, `2 d 4 h`.
export function lasting(seconds) {
  if (seconds < 0) return `-${lasting(-seconds)}`;
  if (seconds < 1) return seconds >= 0.05 ? `${seconds.toFixed(1)} s` : "0 s";
  const whole = Math.floor(seconds);
  if (whole < 60) return `${whole} s`;
  const [minutes, hours, days] = [60, 3600, 86_400].map((size) => Math.floor(whole / size));
  if (hours < 1) return minutes < 10 && whole % 60 ? `${minutes} min ${whole % 60} s` : `${minutes} min`;
  if (days < 1) return minutes % 60 ? `${hours} h ${minutes % 60} min` : `${hours} h`;
  return hours % 24 && days < 10 ? `${days} d ${hours % 24} h` : `${days} d`;
}

// The time that an overview's figures are of.
export const period = (flow) => lasting((Date.parse(flow.now) - Date.parse(flow.since)) / 1000);

// The same in one unit, for narrow columns.
export function briefly(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of [[86_400, "d"], [3600, "h"], [60, "min"]]) {
    if (whole >= size) return `${Math.floor(whole / size)} ${unit}`;
  }
  return `${whole} s`;
}

const full = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });
export const moment = (iso) => full.format(new Date(iso));

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
export const timeOfDay = (iso) => clock.format(new Date(iso));

export const percent = (fraction) => `${Math.round(fraction * 100)} %`;

// `mia` for `human:mia`; empty for one without a name.
export const nameIn = (principal) => principal?.replace(/^(agent|human|user):/, "") ?? "";

// `B-003::2` for `B-003-implement-repositories::2`, for narrow places.
export const shortKey = (key) => /^([A-Za-z0-9]+-\d+)(?:[^:]*)((?:::.*)?)$/.exec(key)?.slice(1).join("") ?? key;
