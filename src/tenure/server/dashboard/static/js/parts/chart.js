// A chart over time, with totals as text below.
import { html, useMemo } from "../html.js";
import { colour } from "../theme.js";
import { number } from "../format.js";
import { Plot, axes, clock } from "./plot.js";

// `series`: [{ name, tone, kind: "bars" | "area" }], the lowest first: values are stacked.
// `rows`: [[seconds, value, …], …], oldest first.
export function Chart({ series, rows, height = 150, label }) {
  const data = useMemo(() => columns(series, rows), [series, rows]);
  const options = (Drawn) => ({
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(4, high * 1.1)] } },
    axes: axes(clock, whole),
    series: [{}, ...[...series].reverse().map((one) => look(Drawn, one))],
    hooks: { setCursor: [hover(series)] },
  });
  return html`<figure class="chart" aria-label=${label}>
    <${Plot} options=${options} data=${data} shape=${series} height=${height} />
    <figcaption class="legend">
      ${series.map((one, index) => html`<span key=${one.name}><i class=${`swatch ${one.tone}`}></i>${one.name}
        <b>${number(sum(series, rows, index))}</b></span>`)}
    </figcaption>
  </figure>`;
}

// Bars: the total. Areas: the last value.
function sum(series, rows, index) {
  if (series[index].kind === "bars") return rows.reduce((total, row) => total + row[index + 1], 0);
  return rows.length ? rows[rows.length - 1][index + 1] : 0;
}

// The top of the stack is drawn first, so that the lower series stay visible.
function columns(series, rows) {
  const tops = series.map(() => []);
  for (const row of rows) {
    let top = 0;
    series.forEach((_, index) => tops[index].push((top += row[index + 1])));
  }
  return [rows.map((row) => row[0]), ...tops.reverse()];
}

const whole = (tick) => (Number.isInteger(tick) ? number(tick) : "");

function look(Drawn, { tone, kind }) {
  const stroke = colour(`--${tone}`);
  if (kind === "bars") {
    const bars = Drawn.paths.bars({ size: [0.7, 14], radius: 0.15 });
    return { stroke, fill: stroke, width: 0, points: { show: false }, paths: bars };
  }
  const steps = Drawn.paths.stepped({ align: -1 });
  return { stroke, fill: colour(`--${tone}-soft`), width: 1.5, points: { show: false }, paths: steps };
}

// The values under the pointer, as the chart's title.
function hover(series) {
  return (plot) => {
    const index = plot.cursor.idx;
    if (index === null || index === undefined || !plot.data[0].length) return;
    const tops = plot.data.slice(1).map((column) => column[index]).reverse();
    const own = tops.map((top, n) => top - (n ? tops[n - 1] : 0));
    const lines = series.map((one, n) => `${one.name}: ${number(own[n])}`);
    plot.root.title = [clock(plot.data[0][index]), ...lines].join("\n");
  };
}
