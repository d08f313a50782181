// The roofline chart: the server's figure in the theme's colours, with labels that never overlap.
/* global Plotly */
import { cross, inside, place, quietest } from './labels.js';
import { axis, digits, members, paintTrace, si } from './paint.js';
import { sans, token } from './tokens.js';

const lg = Math.log10;
const NARROW = 480;

export function roofline(el, figure, { onSelect, onPoint }) {
  let meta = figure.layout.meta;
  let focus = null, ring = null, mode = 'select', quiet = false;

  const narrow = () => el.clientWidth < NARROW;
  const points = () => figure.data.filter((t) => t.meta.role === 'points');

  function traces() {
    const shown = meta.level === 'step' ? null : focus;      // a step has no rows in the table
    const painted = figure.data.map((t) => paintTrace(t, token, { focus: shown, scale: narrow() ? .66 : 1 }));
    if (meta.centroid && meta.level !== 'run') painted.push(centroid());
    const at = ring === null ? null : find(ring);
    if (at) painted.push({
      type: 'scatter', mode: 'markers', x: [at.x], y: [at.y], hoverinfo: 'skip', meta: { role: 'ring' },
      marker: { symbol: 'circle-open', size: at.size * (narrow() ? .66 : 1) + 9, color: token('accent'), line: { width: 2, color: token('accent') } },
    });
    return painted;
  }

  // Where all the known work of the rank lies.
  function centroid() {
    const { ai, flop_per_s: rate } = meta.centroid;
    const share = meta.coverage_pct === null ? '' : `<br>${digits(meta.coverage_pct)} % of the kernel time`;
    return {
      type: 'scatter', mode: 'markers', x: [ai], y: [rate / meta.scale], meta: { role: 'centroid' },
      hovertemplate: `<b>All known work</b><br>${si(rate)}FLOP/s, ${digits(ai)} FLOP/B${share}<extra></extra>`,
      marker: { symbol: 'cross-thin', size: 15, line: { width: 2, color: token('ink') } },
    };
  }

  function find(row) {
    for (const t of points()) {
      const i = t.customdata.findIndex((c) => members(c).includes(row));
      if (i >= 0) return { x: t.x[i], y: t.y[i], size: t.marker.size[i] };
    }
    return null;
  }

  function layout() {
    const small = narrow();
    const ink = token('ink-2');
    return {
      ...figure.layout, autosize: true, dragmode: mode, separators: '.\u202f', selections: [],
      paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)', font: { family: sans(), size: 11, color: ink },
      margin: { l: small ? 60 : 62, r: small ? 12 : 112, t: 14, b: 46 },
      xaxis: axis(figure.layout.xaxis, token, small ? 'FLOP per byte' : undefined),
      yaxis: axis(figure.layout.yaxis, token, small ? meta.unit : undefined),
      shapes: figure.layout.shapes.map((s) => ({ ...s, line: { color: token('line-strong'), width: 1, dash: 'dash' } })),
      hoverlabel: { bgcolor: token('surface'), bordercolor: token('line-strong'), font: { family: sans(), size: 12, color: token('ink') }, align: 'left' },
      newselection: { line: { color: token('accent'), width: 1, dash: 'solid' } },
    };
  }

  async function draw() {
    quiet = true;
    await Plotly.react(el, traces(), layout(), { displayModeBar: false, responsive: true, doubleClick: mode === 'pan' ? 'reset' : false });
    await Plotly.relayout(el, { annotations: annotations() });
    quiet = false;
  }

  // ---- words on the chart
  function annotations() {
    const { xaxis, yaxis, _size: size } = el._fullLayout;
    const px = (x, y) => ({ x: xaxis.l2p(lg(x)), y: yaxis.l2p(lg(y)) });
    const dots = points()
      .flatMap((t) => t.x.map((x, i) => ({ ...px(x, t.y[i]), r: t.marker.size[i] / 2 * (narrow() ? .66 : 1), text: t.customdata[i][2], ax: x, ay: t.y[i] })))
      .sort((a, b) => b.r - a.r);
    const roofs = roofWords(px, size);
    const named = memoryWords(px, dots, size);
    const crowded = named.boxes.some((b) => roofs.boxes.some((r) => cross(b, r)));
    const memory = crowded ? { words: [], boxes: [] } : named;      // none beats a crowded one
    const ridge = ridgeWords(px, size);
    const taken = [...roofBoxes(px), ...roofs.boxes, ...memory.boxes, ...centroidBoxes(px)];
    const placed = place(dots, taken, { w: size.w, h: size.h }, narrow() ? 3 : 8);
    return [...roofs.words, ...memory.words, ...ridge, ...placed.map(label)];
  }

  function label({ dot, x, y, anchor, line }) {
    const base = { x: lg(dot.ax), y: lg(dot.ay), text: dot.text, font: { size: 11, color: token('ink') }, xanchor: anchor, yanchor: 'middle', showarrow: line };
    return line
      ? { ...base, ax: x - dot.x, ay: y - dot.y, arrowhead: 0, arrowwidth: 1, arrowcolor: token('ink-3'), standoff: dot.r }
      : { ...base, xshift: x - dot.x, yshift: dot.y - y };
  }

  function centroidBoxes(px) {
    if (!meta.centroid || meta.level === 'run') return [];
    const at = px(meta.centroid.ai, meta.centroid.flop_per_s / meta.scale);
    return [square(at.x, at.y, 9)];
  }

  // A label must not cross a roof: the roofs as chains of small boxes.
  function roofBoxes(px) {
    const out = [];
    for (const t of figure.data.filter((d) => d.meta.role === 'roof')) {
      for (let k = 0; k + 1 < t.x.length; k++) {
        const a = px(t.x[k], t.y[k]), b = px(t.x[k + 1], t.y[k + 1]);
        const n = Math.max(1, Math.ceil(Math.hypot(b.x - a.x, b.y - a.y) / 8));
        for (let i = 0; i <= n; i++) {
          const x = a.x + (b.x - a.x) * i / n, y = a.y + (b.y - a.y) * i / n;
          out.push({ x0: x - 4, x1: x + 4, y0: y - 3, y1: y + 3 });
        }
      }
    }
    return out;
  }

  // Flat roofs are named in the right margin, pushed apart where they are close; on a phone, over their line.
  function roofWords(px, size) {
    const words = [], boxes = [];
    let free = -Infinity;
    for (const roof of [...meta.roofs].sort((a, b) => height(b) - height(a))) {
      const at = height(roof) / meta.scale, y = px(1, at).y;
      if (narrow()) {
        const ridge = px(roof.ridge_practical ?? roof.ridge_datasheet ?? 1, 1).x;
        const top = Math.max(y - (ridge > 140 ? 9 : 21), free);
        const end = ridge > 140 ? ridge - 8 : size.w;      // left of its ridge, where no point can lie
        free = top + 16;
        words.push(word({ x: end / size.w, xref: 'paper', xanchor: 'right', y: lg(at), yshift: y - top - 9, text: `${roof.dtypes.join(', ')} ${si(height(roof))}FLOP/s` }));
        boxes.push({ x0: end - 130, x1: end, y0: top, y1: top + 18 });
        continue;
      }
      const lines = roofLines(roof), tall = lines.length * 14;
      const top = Math.max(y - 8, free);
      free = top + tall + 6;
      words.push(word({ x: 1, xref: 'paper', xanchor: 'left', xshift: 6, align: 'left', yanchor: 'top', y: lg(at), yshift: y - top, text: lines.join('<br>') }));
    }
    return { words, boxes };
  }

  function roofLines(roof) {
    const lines = [`<b>${roof.dtypes.join(', ')}</b>`];
    if (roof.practical) lines.push(`${digits(roof.practical / meta.scale)} practical`);
    if (roof.datasheet) lines.push(`${digits(roof.datasheet / meta.scale)} datasheet`);
    if (!roof.used) lines.push('<i>not used here</i>');
    return lines;
  }

  // The slanted roof is named along its slope, where the fewest points lie.
  function memoryWords(px, dots, size) {
    const rate = meta.memory.datasheet ?? meta.memory.practical;
    const drawn = figure.data.find((t) => t.meta.role === 'roof' && t.meta.used && t.x.length > 1);
    if (!rate || !drawn || drawn.y[0] === drawn.y[1]) return { words: [], boxes: [] };
    const on = (f) => drawn.x[0] * (drawn.x[1] / drawn.x[0]) ** f;      // its intensity at a fraction of the slope
    const at = (f) => px(on(f), on(f) * rate / meta.scale);
    const seen = inside(at(0), at(1), { w: size.w, h: size.h });
    if (!seen) return { words: [], boxes: [] };
    const from = at(seen.first), to = at(seen.last);
    const slope = Math.atan2(from.y - to.y, to.x - from.x), length = Math.hypot(to.x - from.x, to.y - from.y);
    const both = meta.memory.practical && meta.memory.datasheet;
    const long = both ? `<b>Memory</b>  ${si(meta.memory.practical)}B/s practical, ${si(meta.memory.datasheet)}B/s datasheet` : `<b>Memory</b>  ${si(rate)}B/s`;
    const text = narrow() || length < 330 ? `Memory ${si(meta.memory.practical ?? rate)}B/s` : long;
    const half = text.replace(/<[^>]+>/g, '').length * 2.9;
    if (length < 2.4 * half) return { words: [], boxes: [] };
    const spot = quietest(from, to, dots, narrow() ? 70 : 150, Math.min(.45, (half + 12) / length));
    const nx = -11 * Math.sin(slope), ny = 11 * Math.cos(slope);
    const x = on(seen.first + spot.f * (seen.last - seen.first));
    const boxes = [];
    for (let d = -half; d <= half; d += 8) boxes.push(square(spot.x + nx + d * Math.cos(slope), spot.y - ny - d * Math.sin(slope), 9));
    return { boxes, words: [word({ x: lg(x), y: lg(x * rate / meta.scale), text, textangle: -slope * 180 / Math.PI, xshift: nx, yshift: ny })] };
  }

  function ridgeWords(px, size) {
    const used = meta.roofs.filter((r) => r.used && (r.ridge_practical ?? r.ridge_datasheet));
    return used.slice(0, narrow() ? 1 : 2).map((r, i) => {
      const x = r.ridge_practical ?? r.ridge_datasheet;
      const name = used.length > 1 ? `${r.dtypes[0]} ` : '';
      const text = `${name}ridge ${digits(x)} FLOP/B`;
      const left = px(x, 1).x + text.length * 6 + 8 > size.w;      // no room to its right
      return word({ x: lg(x), y: 0, yref: 'paper', yanchor: 'bottom', xanchor: left ? 'right' : 'left', xshift: left ? -4 : 4, yshift: 2 + 14 * i, text });
    });
  }

  const word = (given) => ({ showarrow: false, font: { size: 11, color: token('ink-2') }, yanchor: 'middle', ...given });
  const square = (x, y, r) => ({ x0: x - r, x1: x + r, y0: y - r, y1: y + r });
  const height = (roof) => roof.practical ?? roof.datasheet;

  // ---- what the reader does
  const ready = draw().then(() => {
    el.on('plotly_selected', (e) => {
      if (quiet || !e) return;
      onSelect(new Set(e.points.filter((p) => p.data.meta.role === 'points').flatMap((p) => members(p.customdata))));
    });
    el.on('plotly_deselect', () => { if (!quiet) onSelect(null); });
    el.on('plotly_doubleclick', () => onSelect(null));
    el.on('plotly_click', (e) => {
      const p = e.points.find((q) => q.data.meta.role === 'points');
      if (!p) return;
      if (meta.level === 'kernel') onPoint(p.customdata[0]);
      else if (members(p.customdata).length) onSelect(new Set(members(p.customdata)));
    });
    let wide = el.clientWidth;
    new ResizeObserver(() => {
      if (Math.abs(el.clientWidth - wide) > 1) { wide = el.clientWidth; draw(); }
    }).observe(el);
  });
  document.addEventListener('themechange', draw);
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);

  return {
    ready,
    focus(set) { focus = set; return draw(); },
    ring(row) { ring = row; return draw(); },
    show(other) { figure = other; meta = figure.layout.meta; return draw(); },
    tool(name) { mode = name; return draw(); },
  };
}
