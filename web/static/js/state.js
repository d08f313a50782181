// What the Run page shows, as a query of its address: search, regimes, sorting, picked groups, open row.
// Pure: no DOM. Everything that the server decides (rank, step) passes through untouched.

const OWN = ['q', 'regime', 'sort', 'pick', 'row', 'level'];
export const LEVELS = ['kernel', 'op', 'module', 'step', 'run'];      // what a point of the roofline speaks for
const SORT = { key: 'time', down: true };
const MAX_INDEX = 1e7;

export const fresh = () => ({ q: '', regimes: new Set(), sort: { ...SORT }, pick: null, row: null, level: LEVELS[0] });

export function parse(search) {
  const given = new URLSearchParams(search);
  const state = fresh();
  state.q = given.get('q') ?? '';
  state.regimes = new Set((given.get('regime') ?? '').split('.').filter(Boolean));
  state.sort = readSort(given.get('sort'));
  state.pick = given.has('pick') ? readRanges(given.get('pick')) : null;
  state.row = readIndex(given.get('row'));
  state.level = LEVELS.find((level) => level === given.get('level')) ?? LEVELS[0];
  return state;
}

export function format(state, search) {
  const out = new URLSearchParams(search);
  for (const name of OWN) out.delete(name);
  if (state.q) out.set('q', state.q);
  if (state.regimes.size) out.set('regime', [...state.regimes].sort().join('.'));
  if (state.sort.key !== SORT.key || state.sort.down !== SORT.down) out.set('sort', (state.sort.down ? '-' : '') + state.sort.key);
  if (state.pick) out.set('pick', writeRanges(state.pick));
  if (state.row !== null) out.set('row', String(state.row));
  if (state.level !== LEVELS[0]) out.set('level', state.level);
  const text = out.toString();
  return text ? `?${text}` : '';
}

// The query of a link inside the page: its own values over what the page shows now.
export function merge(current, link, drop = []) {
  const out = new URLSearchParams(current);
  for (const [name, value] of new URLSearchParams(link)) out.set(name, value);
  for (const name of drop) out.delete(name);
  if (out.get('rank') !== new URLSearchParams(current).get('rank') && new URLSearchParams(current).has('rank')) {
    for (const name of ['pick', 'row', 'step']) out.delete(name);      // indices of another rank mean other rows
  }
  const text = out.toString();
  return text ? `?${text}` : '';
}

function readSort(text) {
  const found = /^(-?)([a-z0-9]{1,16})$/.exec(text ?? '');
  return found ? { key: found[2], down: found[1] === '-' } : { ...SORT };
}

function readIndex(text) {
  return /^\d{1,7}$/.test(text ?? '') ? Number(text) : null;
}

// 0-4.9.12-13  <->  {0, 1, 2, 3, 4, 9, 12, 13}
export function readRanges(text) {
  const out = new Set();
  for (const piece of (text ?? '').split('.')) {
    const found = /^(\d{1,7})(?:-(\d{1,7}))?$/.exec(piece);
    if (!found) continue;
    const first = Number(found[1]), last = Number(found[2] ?? found[1]);
    if (last > MAX_INDEX || last - first > 10_000) continue;
    for (let i = first; i <= last; i++) out.add(i);
  }
  return out;
}

export function writeRanges(set) {
  const sorted = [...set].sort((a, b) => a - b);
  const out = [];
  for (let i = 0; i < sorted.length; i++) {
    const first = sorted[i];
    while (sorted[i + 1] === sorted[i] + 1) i++;
    out.push(sorted[i] === first ? `${first}` : `${first}-${sorted[i]}`);
  }
  return out.join('.');
}
