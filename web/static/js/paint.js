// A figure as the server sends it, dressed in the tokens of the theme. Pure: `token` is handed in.
import { alpha, transparent } from './colour.js';

// The rows of the table that a point speaks for: its own, or those of an op, a module, a rank.
export const members = (told) => told[4] ?? [told[0]];

export function paintTrace(trace, token, { focus, scale = 1 } = {}) {
  if (trace.meta.role === 'roof') return paintRoof(trace, token);
  const edge = token(`${trace.meta.regime}-edge`);
  const pale = ['memory', 'copy'].includes(trace.meta.regime) && !transparent(edge);
  const chosen = focus && trace.customdata.flatMap((c, i) => (members(c).some((row) => focus.has(row)) ? [i] : []));
  return {
    ...trace,
    marker: {
      ...trace.marker,
      size: trace.marker.size.map((s) => Math.max(5, s * scale)),
      color: alpha(token(trace.meta.regime), .82),
      opacity: 1,
      line: { color: pale ? edge : token('surface'), width: 1 },
    },
    selectedpoints: chosen ?? undefined,
    selected: { marker: { opacity: 1 } },
    unselected: { marker: { opacity: .12 } },
  };
}

function paintRoof(trace, token) {
  const color = trace.meta.used ? token('ink-2') : token('ink-3');
  return { ...trace, line: { ...trace.line, color }, opacity: trace.meta.used ? 1 : .75 };
}

export const axis = (given, token, title) => ({
  ...given,
  title: { text: title ?? given.title.text, font: { size: 11, color: token('ink-2') }, standoff: 6 },
  gridcolor: token('line'), linecolor: token('line-strong'), tickcolor: token('line-strong'),
  tickfont: { size: 11, color: token('ink-3') }, zeroline: false, showline: true, ticks: 'outside', ticklen: 4,
  ...ticks(given.range),
});

// One tick a decade, thinned so that about eight stay; numbers in full, as people say them.
export function ticks(range) {
  const first = Math.ceil(range[0] - 1e-9), last = Math.floor(range[1] + 1e-9);
  const every = Math.max(1, Math.ceil((last - first + 1) / 9));
  const tickvals = [], ticktext = [];
  for (let d = first; d <= last; d += every) {
    tickvals.push(10 ** d);
    ticktext.push(inFull(d));
  }
  return { tickmode: 'array', tickvals, ticktext };
}

function inFull(decade) {
  if (decade < -4 || decade > 6) return `10<sup>${String(decade).replace('-', '−')}</sup>`;
  if (decade < 0) return (10 ** decade).toFixed(-decade);
  return String(10 ** decade).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

// 14.5e12 -> "14.5 T"; three digits, an SI prefix.
export function si(value) {
  for (const [factor, prefix] of [[1e15, 'P'], [1e12, 'T'], [1e9, 'G'], [1e6, 'M']]) {
    if (value >= factor) return `${digits(value / factor)} ${prefix}`;
  }
  return `${digits(value)} `;
}

export const digits = (v) => (v >= 100 ? v.toFixed(0) : String(Number(v.toPrecision(3))));
