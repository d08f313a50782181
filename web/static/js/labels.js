// Placement of labels beside points, greedily: the largest first, the nearest place that crosses nothing; none
// beats a crowded one. Pure: boxes and circles in px, y down.

export const cross = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;

const FAR = [4, 20, 40, 64, 92];
const ANGLES = [0, 180, 30, -30, 150, 210, 60, -60, 120, 240, 90, 270];
const CHAR = 6.1, LINE = 15;

// dots: [{x, y, r, text}], largest first; taken: boxes that nothing may cross; frame: {w, h}.
// Returns [{dot, x, y, anchor, line}] with the end of the label's leader.
export function place(dots, taken, frame, limit = 7) {
  const boxes = [...taken], out = [];
  const circles = dots.map((d) => ({ x0: d.x - d.r, x1: d.x + d.r, y0: d.y - d.r, y1: d.y + d.r }));
  const said = new Set();
  for (const dot of dots) {
    if (out.length === limit || said.size >= 2 * limit) break;
    if (said.has(dot.text)) continue;      // one name once, at its largest point
    said.add(dot.text);
    const found = spot(dot, boxes, circles, frame);
    if (!found) continue;
    boxes.push(found.box);
    out.push(found);
  }
  return out;
}

function spot(dot, boxes, circles, frame) {
  const w = dot.text.length * CHAR + 6;
  for (const far of FAR) for (const deg of ANGLES) {
    const c = Math.cos(deg * Math.PI / 180), s = Math.sin(deg * Math.PI / 180);
    const x = dot.x + c * (dot.r + far), y = dot.y - s * (dot.r + far);
    const anchor = c > .1 ? 'left' : c < -.1 ? 'right' : 'center';
    const left = anchor === 'left' ? x : anchor === 'right' ? x - w : x - w / 2;
    const box = { x0: left, x1: left + w, y0: y - LINE / 2, y1: y + LINE / 2 };
    if (box.x0 < 4 || box.x1 > frame.w - 4 || box.y0 < 4 || box.y1 > frame.h - 18) continue;
    if (boxes.some((b) => cross(b, box)) || circles.some((b) => cross(b, box))) continue;
    return { dot, x, y, anchor, line: far > 10, box };
  }
  return null;
}

// The stretch of a line (from..to in px) that lies inside the frame, as fractions of its length; null when none does.
export function inside(from, to, frame) {
  let first = 0, last = 1;
  for (const [a, b, end] of [[from.x, to.x, frame.w], [from.y, to.y, frame.h]]) {
    if (a === b) { if (a < 0 || a > end) return null; continue; }
    const cuts = [(0 - a) / (b - a), (end - a) / (b - a)].sort((p, q) => p - q);
    first = Math.max(first, cuts[0]);
    last = Math.min(last, cuts[1]);
  }
  return first < last ? { first, last } : null;
}

// The place along a line (from..to in px) that is farthest from the points, weighed by nearness.
export function quietest(from, to, dots, reach, margin = 0.14) {
  let best = null;
  for (let i = 0; i <= 40; i++) {
    const f = margin + (1 - 2 * margin) * i / 40;
    const x = from.x + (to.x - from.x) * f, y = from.y + (to.y - from.y) * f;
    const near = dots.reduce((n, d) => n + Math.max(0, 1 - Math.hypot(d.x - x, d.y - y) / reach), 0);
    if (!best || near < best.near - 1e-9) best = { near, x, y, f };
  }
  return best;
}
