// The report's own behaviour: the roofline in the colours of the theme, and the filter of the table.
// Figures come as JSON in the page; colours are asked from tokens.css, so that light and dark are one file.
/* global Plotly */
'use strict';
(() => {
  const lg = Math.log10;
  const probe = document.createElement('i');
  probe.hidden = true;
  document.body.append(probe);
  const token = (name) => { probe.style.color = `var(--${name})`; return getComputedStyle(probe).color; };
  const alpha = (colour, a) => `rgba(${(colour.match(/[\d.]+/g) ?? [0, 0, 0]).slice(0, 3).join(', ')}, ${a})`;
  const text = (s) => String(s).replace(/[&<>]/g, (c) => ({ '&': '&amp;', '<': '&lt;', '>': '&gt;' })[c]);
  const digits = (v) => (v >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3))));
  const si = (v) => {
    const [factor, prefix] = [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M']].find(([f]) => v >= f) ?? [1, ''];
    return `${digits(v / factor)} ${prefix}`;
  };

  // ---- the table
  const field = document.getElementById('filter');
  const rows = [...document.querySelectorAll('#kernels tbody tr')];
  const words = rows.map((r) => `${r.cells[0].title} ${r.cells[0].textContent} ${r.cells[1].textContent}`.toLowerCase());
  field?.addEventListener('input', () => {
    const asked = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    rows.forEach((r, i) => { r.hidden = !asked.every((w) => words[i].includes(w)); });
  });
  function pick(row) {
    rows.forEach((r) => r.classList.remove('picked'));
    const found = document.getElementById(`k${row}`);
    if (!found) return;
    found.hidden = false;
    found.classList.add('picked');
    found.scrollIntoView({ block: 'center' });
  }

  // ---- the chart
  const el = document.getElementById('plot'), held = document.getElementById('figure');
  if (!el || !held) return;
  const figure = JSON.parse(held.textContent), meta = figure.layout.meta;
  const narrow = () => el.clientWidth < 480;
  const height = (roof) => roof.practical ?? roof.datasheet;

  function paint(trace) {
    if (trace.meta.role === 'roof') {
      const used = trace.meta.used;
      return { ...trace, line: { ...trace.line, color: token(used ? 'ink-2' : 'ink-3') }, opacity: used ? 1 : .75 };
    }
    const known = ['compute', 'memory', 'latency', 'communication', 'copy', 'input', 'host', 'dependency'];
    const regime = known.includes(trace.meta.regime) ? trace.meta.regime : 'unknown';
    const scale = narrow() ? .66 : 1;
    const marker = { ...trace.marker, size: trace.marker.size.map((s) => Math.max(5, s * scale)), color: alpha(token(regime), .82), opacity: 1, line: { color: token('surface'), width: 1 } };
    return { ...trace, marker };
  }

  // One tick a decade, thinned so that about eight stay.
  function ticks(range) {
    const first = Math.ceil(range[0] - 1e-9), last = Math.floor(range[1] + 1e-9);
    const every = Math.max(1, Math.ceil((last - first + 1) / 9)), tickvals = [], ticktext = [];
    for (let d = first; d <= last; d += every) {
      tickvals.push(10 ** d);
      ticktext.push(d < -4 || d > 6 ? `10<sup>${d}</sup>` : d < 0 ? (10 ** d).toFixed(-d) : (10 ** d).toLocaleString('en'));
    }
    return { tickmode: 'array', tickvals, ticktext };
  }

  const axis = (given, title) => ({
    ...given, ...ticks(given.range), title: { text: title ?? given.title.text, font: { size: 11, color: token('ink-2') }, standoff: 6 },
    gridcolor: token('line'), linecolor: token('line-strong'), tickcolor: token('line-strong'), tickfont: { size: 11, color: token('ink-3') },
    zeroline: false, showline: true, ticks: 'outside', ticklen: 4,
  });

  function layout() {
    const small = narrow(), family = getComputedStyle(document.body).fontFamily;
    return {
      ...figure.layout, autosize: true, dragmode: small ? false : 'zoom', paper_bgcolor: 'rgba(0,0,0,0)', plot_bgcolor: 'rgba(0,0,0,0)',
      font: { family, size: 11, color: token('ink-2') }, margin: { l: small ? 48 : 62, r: small ? 12 : 112, t: 14, b: 46 },
      xaxis: axis(figure.layout.xaxis, small ? 'FLOP per byte' : undefined), yaxis: axis(figure.layout.yaxis, small ? meta.unit : undefined),
      shapes: figure.layout.shapes.map((s) => ({ ...s, line: { color: token('line-strong'), width: 1, dash: 'dash' } })),
      hoverlabel: { bgcolor: token('surface'), bordercolor: token('line-strong'), font: { family, size: 12, color: token('ink') }, align: 'left' },
    };
  }

  // ---- words on the chart: none beats a crowded one
  const word = (given) => ({ showarrow: false, font: { size: 11, color: token('ink-2') }, yanchor: 'middle', ...given });
  const cross = (a, b) => a.x0 < b.x1 && a.x1 > b.x0 && a.y0 < b.y1 && a.y1 > b.y0;

  function annotations() {
    const { xaxis, yaxis, _size: size } = el._fullLayout;
    const px = (x, y) => ({ x: xaxis.l2p(lg(x)), y: yaxis.l2p(lg(y)) });
    return [...roofWords(px, size), ...ridgeWords(px, size), ...memoryWord(px, size), ...names(px, size)];
  }

  // Flat roofs are named in the right margin, pushed apart where they are close; on a phone over their line.
  function roofWords(px, size) {
    let free = -Infinity;
    return [...meta.roofs].sort((a, b) => height(b) - height(a)).map((roof) => {
      const at = height(roof) / meta.scale, y = px(1, at).y, name = text(roof.dtypes.join(', '));
      if (narrow()) {
        const top = Math.max(y - 9, free);
        free = top + 16;
        return word({ x: .02, xref: 'paper', xanchor: 'left', y: lg(at), yshift: y - top - 9, text: `${name} ${si(height(roof))}FLOP/s` });
      }
      const lines = [`<b>${name}</b>`];
      if (roof.practical) lines.push(`${digits(roof.practical / meta.scale)} practical`);
      if (roof.datasheet) lines.push(`${digits(roof.datasheet / meta.scale)} datasheet`);
      if (!roof.used) lines.push('<i>not used here</i>');
      const top = Math.max(y - 8, free);
      free = top + lines.length * 14 + 6;
      return word({ x: 1, xref: 'paper', xanchor: 'left', xshift: 6, align: 'left', yanchor: 'top', y: lg(at), yshift: y - top, text: lines.join('<br>') });
    });
  }

  function ridgeWords(px, size) {
    const used = meta.roofs.filter((r) => r.used && (r.ridge_practical ?? r.ridge_datasheet));
    return used.slice(0, narrow() ? 1 : 2).map((r, i) => {
      const x = r.ridge_practical ?? r.ridge_datasheet;
      const said = `${used.length > 1 ? `${text(r.dtypes[0])} ` : ''}ridge ${digits(x)} FLOP/B`;
      const left = px(x, 1).x + said.length * 6 + 8 > size.w;
      return word({ x: lg(x), y: 0, yref: 'paper', yanchor: 'bottom', xanchor: left ? 'right' : 'left', xshift: left ? -4 : 4, yshift: 2 + 14 * i, text: said });
    });
  }

  // The slanted roof is named along its slope, near its upper end.
  function memoryWord(px, size) {
    const rate = meta.memory.datasheet ?? meta.memory.practical;
    const roof = figure.data.find((t) => t.meta.role === 'roof' && t.meta.used && t.x.length > 1 && t.y[0] !== t.y[1]);
    if (!rate || !roof) return [];
    const onSlope = (x) => px(x, x * rate / meta.scale);
    const from = onSlope(roof.x[0]), to = onSlope(roof.x[1]);
    const seen = Math.min(1, (size.h - from.y) / (to.y - from.y));      // where it enters the frame from below
    const first = from.y > size.h && to.y < size.h ? Math.max(0, seen) : 0;
    const said = narrow() ? `Memory ${si(meta.memory.practical ?? rate)}B/s` : `<b>Memory</b>  ${[meta.memory.practical, meta.memory.datasheet].filter(Boolean).map((v) => `${si(v)}B/s`).join(' of ')}`;
    const length = (1 - first) * Math.hypot(to.x - from.x, to.y - from.y), half = said.replace(/<[^>]+>/g, '').length * 2.9;
    if (length < 2.6 * half) return [];
    const f = first + (1 - first) * Math.min(.7, 1 - (half + 24) / length);
    const x = roof.x[0] * (roof.x[1] / roof.x[0]) ** f, slope = Math.atan2(from.y - to.y, to.x - from.x);
    return [word({ x: lg(x), y: lg(x * rate / meta.scale), text: said, textangle: -slope * 180 / Math.PI, xshift: -11 * Math.sin(slope), yshift: 11 * Math.cos(slope) })];
  }

  // The largest points by name, where a name crosses nothing. Names come escaped.
  function names(px, size) {
    const scale = narrow() ? .66 : 1;
    const dots = figure.data.filter((t) => t.meta.role === 'points')
      .flatMap((t) => t.x.map((x, i) => ({ ...px(x, t.y[i]), lx: lg(x), ly: lg(t.y[i]), r: t.marker.size[i] / 2 * scale, name: t.customdata[i][2] })))
      .sort((a, b) => b.r - a.r);
    const taken = [...roofBoxes(px), ...dots.map((d) => ({ x0: d.x - d.r, x1: d.x + d.r, y0: d.y - d.r, y1: d.y + d.r }))];
    const out = [], said = new Set();
    for (const d of dots.slice(0, 40)) {
      if (out.length === (narrow() ? 3 : 7)) break;
      if (said.has(d.name)) continue;
      said.add(d.name);
      const w = d.name.replace(/&\w+;/g, '&').length * 6.1 + 6;
      const spots = [2, 14, 28].flatMap((far) => [[1, 0], [-1, 0], [.7, -.7], [.7, .7], [-.7, -.7], [-.7, .7]].map(([c, s]) => ({ x: d.x + c * (d.r + far), y: d.y + s * (d.r + far), left: c > 0 })));
      const box = ({ x, y, left }) => ({ x0: left ? x : x - w, x1: left ? x + w : x, y0: y - 8, y1: y + 8 });
      const free = spots.find((s) => { const b = box(s); return b.x0 > 4 && b.x1 < size.w - 4 && b.y0 > 4 && b.y1 < size.h - 18 && !taken.some((t) => cross(t, b)); });
      if (!free) continue;
      taken.push(box(free));
      out.push(word({ x: d.lx, y: d.ly, text: d.name, font: { size: 11, color: token('ink') }, xanchor: free.left ? 'left' : 'right', xshift: free.x - d.x, yshift: d.y - free.y }));
    }
    return out;
  }

  function roofBoxes(px) {
    return figure.data.filter((t) => t.meta.role === 'roof').flatMap((t) => t.x.slice(1).flatMap((x, k) => {
      const a = px(t.x[k], t.y[k]), b = px(x, t.y[k + 1]), n = Math.min(400, Math.max(1, Math.ceil(Math.hypot(b.x - a.x, b.y - a.y) / 8)));
      return Array.from({ length: n + 1 }, (_, i) => ({ x: a.x + (b.x - a.x) * i / n, y: a.y + (b.y - a.y) * i / n })).map((p) => ({ x0: p.x - 4, x1: p.x + 4, y0: p.y - 12, y1: p.y + 3 }));
    }));
  }

  async function draw() {
    await Plotly.react(el, figure.data.map(paint), layout(), { displayModeBar: false, responsive: false });
    await Plotly.relayout(el, { annotations: annotations() });
    document.documentElement.dataset.drawn = 'true';
  }
  draw().then(() => {
    el.on('plotly_click', (e) => {
      const p = e.points.find((q) => q.data.meta.role === 'points');
      if (p) pick(p.customdata[0]);
    });
    let wide = el.clientWidth;
    new ResizeObserver(() => { if (Math.abs(el.clientWidth - wide) > 1) { wide = el.clientWidth; draw(); } }).observe(el);
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', draw);
})();
