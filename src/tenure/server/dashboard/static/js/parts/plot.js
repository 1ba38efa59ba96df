// The base of all charts: uPlot, loaded with the first chart, in a box that sets its width.
import { html, useEffect, useRef, useState } from "../html.js";
import { useSignal } from "../signal.js";
import { colour, shown } from "../theme.js";
import { timeOfDay } from "../format.js";

let loading = null;
const library = () => (loading ??= import("../../vendor/uplot.js").then((module) => module.default));

const FONT = "11px system-ui, sans-serif";

// `options`: uPlot's options without the size, as a function of the library; evaluated again when `shape` changes.
export function Plot({ options, data, shape, height }) {
  const box = useRef(null);
  const plot = useRef(null);
  const [Drawn, setDrawn] = useState(null);
  const theme = useSignal(shown);
  useEffect(() => {
    let isOver = false;
    library().then((found) => !isOver && setDrawn(() => found));
    return () => {
      isOver = true;
    };
  }, []);
  useEffect(() => {
    if (!Drawn || !box.current) return undefined; // removed before the library was loaded
    const width = () => Math.max(120, box.current.clientWidth);
    plot.current = new Drawn({ ...PLAIN, ...options(Drawn), width: width(), height }, data, box.current);
    const resized = new ResizeObserver(() => box.current && plot.current?.setSize({ width: width(), height }));
    resized.observe(box.current);
    return () => {
      resized.disconnect();
      plot.current.destroy();
      plot.current = null;
    };
  }, [Drawn, theme, shape]);
  useEffect(() => {
    plot.current?.setData(data);
  }, [data]);
  return html`<div class="chart-box" ref=${box} style=${{ height: `${height}px` }}></div>`;
}

const PLAIN = {
  padding: [8, 8, 0, 0],
  legend: { show: false },
  cursor: { points: { show: false }, drag: { x: false, y: false }, y: false },
};

// The time axis below and the value axis at the left, with functions that format their ticks.
export function axes(time, value, size = 38) {
  const axis = { stroke: colour("--faint"), font: FONT, grid: { stroke: colour("--line"), width: 1 } };
  const named = (name) => (_, ticks) => ticks.map(name);
  return [
    { ...axis, ticks: { show: false }, grid: { show: false }, size: 24, space: 70, values: named(time) },
    { ...axis, ticks: { show: false }, size: room(size), space: 34, values: named(value) },
  ];
}

// Wide enough for the longest tick, so that large numbers are not cut.
const room = (least) => (_, ticks) => Math.max(least, 10 + 7 * Math.max(0, ...(ticks ?? []).map((text) => text.length)));

export const clock = (seconds) => timeOfDay(new Date(seconds * 1000)).slice(0, 5);
