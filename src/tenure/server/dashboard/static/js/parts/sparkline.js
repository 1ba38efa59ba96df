// A line of the last hour, one point a minute; gaps where nothing was reported.
import { html } from "../html.js";
import { now } from "../time.js";

const MINUTES = 60;
const HEIGHT = 24;

export function Sparkline({ label, minutes, field }) {
  const points = minutes.filter((minute) => minute[field] !== null).map((minute) => ({
    x: MINUTES - (now() - Date.parse(minute.at)) / 60_000, value: minute[field],
  }));
  const most = Math.max(...points.map((point) => point.value), 1);
  const y = (value) => (HEIGHT - 2 - ((HEIGHT - 4) * value) / most).toFixed(1);
  const description = points.length ? `${label}: at most ${most}, now ${points.at(-1).value}` : `${label}: nothing yet`;
  return html`<svg class="sparkline" viewBox=${`0 0 ${MINUTES} ${HEIGHT}`} preserveAspectRatio="none" role="img"
    aria-label=${description}><title>${description}</title>
    ${runs(points).map((run, n) => html`<polyline key=${n} vector-effect="non-scaling-stroke"
      points=${run.map((point) => `${point.x.toFixed(1)},${y(point.value)}`).join(" ")} />`)}
  </svg>`;
}

// Points without a gap between them; a single one becomes a short line.
function runs(points) {
  const found = [];
  for (const point of points) {
    const last = found.at(-1)?.at(-1);
    if (last && point.x - last.x < 2.5) found.at(-1).push(point);
    else found.push([{ ...point, x: point.x - 0.8 }, point]);
  }
  return found;
}
