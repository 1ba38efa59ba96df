// A large drawing in a viewport: drag to move; wheel, buttons or keys to zoom.
import { html, useEffect, useRef, useState } from "../html.js";
import { Icon } from "./icons.js";

const MOST = 2.5; // largest zoom
const LEAST = 0.05;
const READABLE = 0.2; // smallest zoom to fit: a readable part is better than an unreadable whole
const STEPS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
const SLACK = 4; // pixels that the pointer may move in a click

export function Canvas({ width, height, label, children }) {
  const box = useRef(null);
  const drag = useRef(null);
  const [view, setView] = useState(null); // { scale, x, y }

  function fit() {
    if (!box.current) return;
    const { clientWidth, clientHeight } = box.current;
    const scale = Math.max(READABLE, Math.min(1, clientWidth / width, clientHeight / height));
    // A drawing that does not fit is aligned to its start, and centred on the other axis.
    const [x, y] = [(clientWidth - width * scale) / 2, (clientHeight - height * scale) / 2];
    setView(width >= height ? { scale, x: Math.max(0, x), y } : { scale, x, y: Math.max(0, y) });
  }
  useEffect(fit, [width, height]);

  function zoom(by, at = null) {
    const { clientWidth, clientHeight } = box.current;
    const point = at ?? { x: clientWidth / 2, y: clientHeight / 2 };
    setView((now) => {
      const scale = Math.max(LEAST, Math.min(MOST, now.scale * by));
      const ratio = scale / now.scale;
      return { scale, x: point.x - (point.x - now.x) * ratio, y: point.y - (point.y - now.y) * ratio };
    });
  }

  const move = (x, y) => setView((now) => ({ ...now, x: now.x + x, y: now.y + y }));
  const place = (event) => {
    const edge = box.current.getBoundingClientRect();
    return { x: event.clientX - edge.left, y: event.clientY - edge.top };
  };

  useEffect(() => {
    const here = box.current;
    const wheel = (event) => {
      event.preventDefault();
      if (event.shiftKey) move(-event.deltaY, 0);
      else zoom(Math.exp(-event.deltaY * 0.0015), place(event));
    };
    here.addEventListener("wheel", wheel, { passive: false }); // Preact's are passive: the page would scroll too
    return () => here.removeEventListener("wheel", wheel);
  }, []);

  function pressed(event) {
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else if (STEPS[event.key]) move(...STEPS[event.key]);
    else return;
    event.preventDefault();
  }

  function dragged(event) {
    if (!drag.current || event.buttons !== 1) return;
    const at = place(event);
    const [x, y] = [at.x - drag.current.from.x, at.y - drag.current.from.y];
    if (!drag.current.isMoving && Math.hypot(x, y) < SLACK) return;
    if (!drag.current.isMoving) box.current.setPointerCapture(event.pointerId);
    drag.current = { from: at, isMoving: true };
    move(x, y);
  }

  return html`<div class="canvas panel flush" ref=${box} tabindex="0" role="group" onKeyDown=${pressed}
    aria-label=${`${label}. Arrow keys move, plus and minus zoom, 0 fits.`}
    onPointerDown=${(event) => (drag.current = { from: place(event), isMoving: false })}
    onPointerMove=${dragged} onPointerUp=${() => (drag.current = null)}>
    <svg class="graph" role="presentation">
      <${Arrows} />
      ${view && html`<g transform=${`translate(${view.x},${view.y}) scale(${view.scale})`}>${children}</g>`}
    </svg>
    <div class="canvas-tools">
      <button class="button small" aria-label="Zoom in" onClick=${() => zoom(1.25)}><${Icon} name="plus" /></button>
      <button class="button small" aria-label="Zoom out" onClick=${() => zoom(0.8)}><${Icon} name="minus" /></button>
      <button class="button small" aria-label="Fit" onClick=${fit}><${Icon} name="fit" /></button>
    </div>
  </div>`;
}

function Arrows() {
  const arrow = (id, look, size) => html`<marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth=${size}
    markerHeight=${size} orient="auto-start-reverse"><path class=${look} d="M0,0.8L7,4L0,7.2z" /></marker>`;
  return html`<defs>${arrow("arrow", "arrow", 7)}${arrow("arrow-critical", "arrow critical", 5)}</defs>`;
}
