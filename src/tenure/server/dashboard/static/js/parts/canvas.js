// A large drawing in a viewport: drag to move; wheel, pinch, buttons or keys to zoom; a small map of the whole.
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { Icon } from "./icons.js";

const MOST = 2.5; // largest zoom
const LEAST = 0.02;
const READABLE = 0.8; // of a drawing that does not fit: a readable part is better than an unreadable whole
const FAR = 0.7; // below this zoom the details are hidden, and names drawn larger
const NAME = 11.5; // pixels on the screen that a name has from afar,
const LARGEST_NAME = 34; // as far as its box has room
const STEPS = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
const SLACK = 4; // pixels that the pointer may move in a click

// One axis of a view: centred if it fits, else without a gap at either end.
const within = (at, size, room) => (size <= room ? (room - size) / 2 : Math.min(0, Math.max(room - size, at)));

// `focus`: the point that is shown at first if the drawing does not fit. `map`: the drawing in small, of [x, y, look].
export function Canvas({ width, height, label, focus, map, box: node, children }) {
  const box = useRef(null);
  const pointers = useRef(new Map());
  const drag = useRef(null);
  const [view, setView] = useState(null); // { scale, x, y }

  const whole = () => Math.min(1, box.current.clientWidth / width, box.current.clientHeight / height);
  function show(scale, { x, y }) {
    const { clientWidth, clientHeight } = box.current;
    setView({
      scale,
      x: within(clientWidth / 2 - x * scale, width * scale, clientWidth),
      y: within(clientHeight / 2 - y * scale, height * scale, clientHeight),
    });
  }
  const fit = () => show(Math.max(LEAST, whole()), { x: width / 2, y: height / 2 });
  const begin = () => show(whole() >= FAR ? whole() : READABLE, focus ?? { x: 0, y: 0 });
  useLayoutEffect(begin, [width, height]);

  function zoom(by, at = null) {
    const { clientWidth, clientHeight } = box.current;
    const point = at ?? { x: clientWidth / 2, y: clientHeight / 2 };
    setView((now) => {
      const scale = Math.max(LEAST, Math.min(MOST, now.scale * by));
      const ratio = scale / now.scale;
      return { scale, x: point.x - (point.x - now.x) * ratio, y: point.y - (point.y - now.y) * ratio };
    });
  }

  // At least a corner of the drawing stays visible.
  const move = (x, y) => setView((now) => {
    const { clientWidth, clientHeight } = box.current;
    const kept = (at, size, room) => Math.min(room - 60, Math.max(60 - size, at));
    return {
      ...now, x: kept(now.x + x, width * now.scale, clientWidth), y: kept(now.y + y, height * now.scale, clientHeight),
    };
  });
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
  }, [width, height]);

  function pressed(event) {
    if (event.key === "+" || event.key === "=") zoom(1.25);
    else if (event.key === "-") zoom(0.8);
    else if (event.key === "0") fit();
    else if (event.key === "1") begin();
    else if (STEPS[event.key]) move(...STEPS[event.key]);
    else return;
    event.preventDefault();
  }

  function down(event) {
    pointers.current.set(event.pointerId, place(event));
    drag.current = { from: place(event), isMoving: false };
  }
  function up(event) {
    pointers.current.delete(event.pointerId);
    drag.current = null;
  }
  function dragged(event) {
    const at = place(event);
    const held = pointers.current;
    if (held.size === 2 && held.has(event.pointerId)) {
      const [other] = [...held].filter(([id]) => id !== event.pointerId).map(([, point]) => point);
      const apart = (point) => Math.hypot(point.x - other.x, point.y - other.y) || 1;
      zoom(apart(at) / apart(held.get(event.pointerId)), { x: (at.x + other.x) / 2, y: (at.y + other.y) / 2 });
      held.set(event.pointerId, at);
      return;
    }
    if (!drag.current || event.buttons !== 1) return;
    const [x, y] = [at.x - drag.current.from.x, at.y - drag.current.from.y];
    if (!drag.current.isMoving && Math.hypot(x, y) < SLACK) return;
    if (!drag.current.isMoving) box.current.setPointerCapture(event.pointerId);
    drag.current = { from: at, isMoving: true };
    move(x, y);
  }

  const isFar = view && view.scale < FAR;
  const name = view ? Math.min(LARGEST_NAME, NAME / view.scale) : NAME;
  return html`<div class="canvas panel flush" ref=${box} tabindex="0" role="group" onKeyDown=${pressed}
    aria-label=${`${label}. Arrow keys move, plus and minus zoom, 0 shows all, 1 a readable part.`}
    onPointerDown=${down} onPointerMove=${dragged} onPointerUp=${up} onPointerCancel=${up}>
    <svg class=${isFar ? "graph far" : "graph"} role="presentation" style=${{ "--name": `${name}px` }}>
      <${Arrows} />
      ${view && html`<g transform=${`translate(${view.x},${view.y}) scale(${view.scale})`}>${children}</g>`}
    </svg>
    ${view && map && html`<${Overview} width=${width} height=${height} view=${view} box=${box} map=${map} node=${node}
      show=${show} />`}
    <div class="canvas-tools">
      <span class="faint" aria-live="polite">${view && `${Math.round(view.scale * 100)} %`}</span>
      <button class="button small" aria-label="Zoom in" onClick=${() => zoom(1.25)}><${Icon} name="plus" /></button>
      <button class="button small" aria-label="Zoom out" onClick=${() => zoom(0.8)}><${Icon} name="minus" /></button>
      <button class="button small" aria-label="Fit" title="Show all (0)" onClick=${fit}><${Icon} name="fit" /></button>
      <button class="button small" aria-label="Readable size" title="A readable part (1)" onClick=${begin}>1:1</button>
    </div>
  </div>`;
}

const SMALL = { width: 190, height: 120 }; // of the map, at most

// The whole drawing in a corner, with a frame around the visible part; a press moves there.
function Overview({ width, height, view, box, map, node, show }) {
  const { clientWidth, clientHeight } = box.current;
  if (width * view.scale <= clientWidth && height * view.scale <= clientHeight) return null;
  const ratio = Math.min(SMALL.width / width, SMALL.height / height);
  function pressed(event) {
    if (event.type === "pointermove" && event.buttons !== 1) return;
    event.stopPropagation();
    const edge = event.currentTarget.getBoundingClientRect();
    show(view.scale, { x: (event.clientX - edge.left) / ratio, y: (event.clientY - edge.top) / ratio });
  }
  const least = (size) => Math.max(size * ratio, 1.5);
  return html`<svg class="canvas-map" width=${width * ratio} height=${height * ratio} aria-hidden="true"
    onPointerDown=${pressed} onPointerMove=${pressed}>
    ${map.map(([x, y, look], n) => html`<rect key=${n} class=${look} x=${(x - node.width / 2) * ratio}
      y=${(y - node.height / 2) * ratio} width=${least(node.width)} height=${least(node.height)} />`)}
    <rect class="frame" x=${-view.x / view.scale * ratio} y=${-view.y / view.scale * ratio}
      width=${clientWidth / view.scale * ratio} height=${clientHeight / view.scale * ratio} />
  </svg>`;
}

function Arrows() {
  const arrow = (id, look, size) => html`<marker id=${id} viewBox="0 0 8 8" refX="7" refY="4" markerWidth=${size}
    markerHeight=${size} orient="auto-start-reverse"><path class=${look} d="M0,0.8L7,4L0,7.2z" /></marker>`;
  return html`<defs>${arrow("arrow", "arrow", 7)}${arrow("arrow-critical", "arrow critical", 5)}</defs>`;
}
