// A chart over time. uPlot is fetched when the first one is drawn; what it comes to stands below it as text.
import { html, useEffect, useRef, useState } from "../html.js";
import { useSignal } from "../signal.js";
import { colour, shown } from "../theme.js";
import { number, timeOfDay } from "../words.js";

let loading = null;
const library = () => (loading ??= import("../../vendor/uplot.js").then((module) => module.default));

const FONT = "11px system-ui, sans-serif";

// `series`: [{ name, tone, kind: "bars" | "area" }], the lowest first: values are stacked.
// `rows`: [[seconds, value, …], …], oldest first.
export function Chart({ series, rows, height = 150, label }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [Plot, setPlot] = useState(null);
  const theme = useSignal(shown);
  useEffect(() => {
    let isOver = false;
    library().then((found) => !isOver && setPlot(() => found));
    return () => {
      isOver = true;
    };
  }, []);
  useEffect(() => {
    if (!Plot || !box.current) return undefined; // gone before the library came
    const width = () => Math.max(120, box.current.clientWidth);
    plot.current = new Plot(options(Plot, series, width(), height), columns(series, rows), box.current);
    const resized = new ResizeObserver(() => box.current && plot.current?.setSize({ width: width(), height }));
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [Plot, theme, series]);
  useEffect(() => {
    plot.current?.setData(columns(series, rows));
  }, [rows]);
  return html`<figure class="chart" aria-label=${label}>
    <div class="chart-box" ref=${box} style=${{ height: `${height}px` }}></div>
    <figcaption class="legend">
      ${series.map((one, index) => html`<span key=${one.name}><i class=${`swatch ${one.tone}`}></i>${one.name}
        <b>${number(sum(series, rows, index))}</b></span>`)}
    </figcaption>
  </figure>`;
}

// Of what happened: in all. Of what stands: now.
function sum(series, rows, index) {
  if (series[index].kind === "bars") return rows.reduce((total, row) => total + row[index + 1], 0);
  return rows.length ? rows[rows.length - 1][index + 1] : 0;
}

// What is stacked highest is drawn first, so that those below it stay to be seen.
function columns(series, rows) {
  const tops = series.map(() => []);
  for (const row of rows) {
    let top = 0;
    series.forEach((_, index) => tops[index].push((top += row[index + 1])));
  }
  return [rows.map((row) => row[0]), ...tops.reverse()];
}

function options(Plot, series, width, height) {
  const grid = colour("--line");
  const text = colour("--faint");
  const drawn = [...series].reverse();
  const axis = { stroke: text, font: FONT, grid: { stroke: grid, width: 1 }, ticks: { show: false } };
  return {
    width,
    height,
    padding: [8, 8, 0, 0],
    legend: { show: false },
    cursor: { points: { show: false }, drag: { x: false, y: false }, y: false },
    scales: { x: { time: true }, y: { range: (_, low, high) => [0, Math.max(4, high * 1.1)] } },
    axes: [
      { ...axis, grid: { show: false }, size: 24, space: 70, values: (_, ticks) => ticks.map(clock) },
      { ...axis, size: 38, space: 34, values: (_, ticks) => ticks.map(whole) },
    ],
    series: [{}, ...drawn.map((one) => look(Plot, one))],
    hooks: { setCursor: [hover(series)] },
  };
}

const whole = (tick) => (Number.isInteger(tick) ? number(tick) : "");
const clock = (seconds) => timeOfDay(new Date(seconds * 1000)).slice(0, 5);

function look(Plot, { tone, kind }) {
  const stroke = colour(`--${tone}`);
  if (kind === "bars") {
    const bars = Plot.paths.bars({ size: [0.7, 14], radius: 0.15 });
    return { stroke, fill: stroke, width: 0, points: { show: false }, paths: bars };
  }
  const steps = Plot.paths.stepped({ align: -1 });
  return { stroke, fill: colour(`--${tone}-soft`), width: 1.5, points: { show: false }, paths: steps };
}

// The numbers under the pointer, as the chart's title.
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
