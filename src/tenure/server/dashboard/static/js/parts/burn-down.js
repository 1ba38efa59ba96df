// The burn-down of a budget: the rest by hour, and the projection from now on.
import { html, useMemo } from "../html.js";
import { colour } from "../theme.js";
import { amount, briefNumber, dollars } from "../format.js";
import { Plot, axes, clock } from "./plot.js";

const HOUR = 3600;
const WEEK = 7 * 24 * HOUR; // the server has hourly data this far back; the projection is drawn this far ahead

// `budget` with its burn; `projection` may still be loading. Amounts become numbers only for drawing.
export function BurnDown({ budget, projection, now }) {
  const minute = Math.floor(now / 60_000) * 60;
  const data = useMemo(() => columns(budget, projection, minute), [budget, projection, minute]);
  const isLong = data[0].at(-1) - data[0][0] > 36 * HOUR;
  const usual = budget.currency === "usd" ? dollars : briefNumber;
  const options = (Drawn) => {
    const line = { width: 1.5, points: { show: false } };
    const steps = Drawn.paths.stepped({ align: 1 });
    return {
      padding: [8, 20, 0, 0],
      scales: { x: { time: true }, y: { range: (_, low, high) => [Math.min(0, low), Math.max(high, 1e-9) * 1.08] } },
      axes: axes(isLong ? day : clock, usual, 52),
      series: [
        {},
        { ...line, stroke: colour("--work"), fill: colour("--work-soft"), paths: steps },
        { ...line, stroke: colour("--odd"), dash: [5, 4] },
      ],
      hooks: { setCursor: [hover(budget.currency)] },
    };
  };
  return html`<figure class="chart" aria-label="Remaining budget over time, and its projection">
    <${Plot} options=${options} data=${data} shape=${`${budget.currency} ${isLong}`} height=${150} />
    <figcaption class="legend">
      <span><i class="swatch work"></i>unspent <b>${amount(budget.currency, unspent(budget))}</b></span>
      ${projection?.exhausted_at && html`<span><i class="swatch odd"></i>projection</span>`}
    </figcaption>
  </figure>`;
}

const unspent = (budget) => Number(budget.allocated) - Number(budget.consumed);
const seconds = (iso) => Date.parse(iso) / 1000;

// The amount of an hour is subtracted at its start: the data is not finer.
function columns(budget, projection, now) {
  const from = Math.max(seconds(budget.since), now - WEEK);
  const hours = budget.burn.filter((hour) => seconds(hour.at) + HOUR > from && seconds(hour.at) < now);
  let left = hours.reduce((sum, hour) => sum + Number(hour.spent), unspent(budget));
  const rows = [[from, left, null]];
  for (const { at, spent } of hours) rows.push([Math.max(from, seconds(at)), (left -= Number(spent)), null]);
  return transposed([...rows, ...ahead(budget, projection, Math.max(now, from + 1))]);
}

// The line to the instant that the projection names; without one there is none, as in the text.
export function ahead(budget, projection, now) {
  const left = unspent(budget);
  const spent = projection?.exhausted_at ? seconds(projection.exhausted_at) : 0;
  if (left <= 0 || spent <= now) return [[now, left, null]];
  const end = Math.min(spent, now + WEEK, ...[budget.until, budget.ends_at].filter(Boolean).map(seconds));
  return end > now ? [[now, left, left], [end, null, (left * (spent - end)) / (spent - now)]] : [[now, left, null]];
}

const transposed = (rows) => [0, 1, 2].map((column) => rows.map((row) => row[column]));

const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const day = (at) => days.format(new Date(at * 1000));

function hover(currency) {
  return (plot) => {
    const index = plot.cursor.idx;
    if (index === null || index === undefined) return;
    const value = plot.data[1][index] ?? plot.data[2][index];
    const at = plot.data[0][index];
    if (value !== null && value !== undefined) plot.root.title = `${day(at)}, ${clock(at)}: ${amount(currency, value)}`;
  };
}
