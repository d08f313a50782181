// The Run page: chart, table and address are three views of one state.
import { wirePrice } from './price.js';
import { roofline } from './roofline.js';
import { filtered } from './rows.js';
import { format, merge, parse } from './state.js';
import { kernelTable } from './table.js';
import { wireWhatIf } from './whatif.js';

const $ = (selector) => document.querySelector(selector);
const NB = '\u202f';
const thousands = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, NB);

const grid = $('[data-kernels]');
const figureEl = $('[data-roofline]');
const search = $('[data-search]');
const state = parse(location.search);
let plot = null, table = null, noteTimer = 0, pointTimer = 0;

function remember() {
  clearTimeout(noteTimer);
  noteTimer = setTimeout(() => history.replaceState(null, '', location.pathname + format(state, location.search) + location.hash), 120);
}

function refresh(options) {
  if (!table) return;
  const count = table.show(state, options);
  const total = Number(grid.dataset.total);
  const said = filtered(state) ? count.shown : count.visible;
  $('[data-shown]').textContent = `${thousands(said)} of ${thousands(total)} groups`;
  $('[data-none]').hidden = count.shown > 0;
  $('[data-clear]').hidden = !filtered(state);
  $('[data-more-line]').hidden = count.visible >= count.shown;
  $('[data-more-button]').textContent = `Show ${thousands(Math.min(200, count.shown - count.visible))} more`;
  chips();
  plot?.focus(filtered(state) ? table.indices() : null);
  remember();
}

// What narrows the table, as chips that take themselves away.
function chips() {
  const box = $('[data-filters]');
  const items = [];
  if (state.pick) items.push([`${thousands(state.pick.size)} picked on the chart`, () => { state.pick = null; }]);
  for (const b of document.querySelectorAll('button[data-regime]')) {
    const on = state.regimes.has(b.dataset.regime);
    b.setAttribute('aria-pressed', String(on));
    if (on) items.push([b.textContent.trim(), () => state.regimes.delete(b.dataset.regime)]);
  }
  box.replaceChildren(...items.map(([text, undo]) => {
    const chip = document.createElement('button');
    chip.type = 'button';
    chip.className = 'btn';
    chip.textContent = `${text} ✕`;
    chip.title = 'remove this filter';
    chip.addEventListener('click', () => { undo(); refresh(); });
    return chip;
  }));
}

function clear() {
  state.q = search.value = '';
  state.regimes.clear();
  state.pick = null;
  refresh();
}

async function showPoint(row) {
  const holder = $('[data-point]');
  if (!holder || !row) return;
  const answer = await fetch(`${grid.dataset.detail}${row.i}/point?rank=${grid.dataset.rank}`);
  if (answer.ok && table.selected() === row) {
    holder.innerHTML = await answer.text();   // our template, names escaped
    holder.hidden = false;
  }
}

function onRow(row) {
  plot?.ring(row ? row.i : null);
  clearTimeout(pointTimer);
  pointTimer = setTimeout(() => showPoint(row), 80);
}

async function toggle(row) {
  await table.toggle(row);
  state.row = table.openIndex();
  remember();
}

function keys(e) {
  if (e.ctrlKey || e.metaKey || e.altKey || document.querySelector('dialog[open]')) return;
  if (e.key === 'Escape') { table?.close(); state.row = null; clear(); return; }
  if (e.target.closest('input, textarea, select, button, a') || !table) return;
  if (e.key === 'j') table.move(1);
  else if (e.key === 'k') table.move(-1);
  else if (e.key === 'Enter' && table.selected()) toggle(table.selected());
}

function wireLinks() {
  document.addEventListener('click', (e) => {
    const a = e.target.closest('a[data-keep]');
    if (!a) return;
    const drop = (a.dataset.drop ?? '').split(' ').filter(Boolean);
    a.href = location.pathname + merge(format(state, location.search), a.search, drop) + (a.hash || (drop.length || a.search.includes('step=') ? '#time' : ''));
  }, { capture: true });
}

function wireTable() {
  table = kernelTable(grid, {
    onRow,
    onOpen(row) { toggle(row); },
    onSort(key) {
      const text = key === 'name' || key === 'regime' || key === 'origin';
      state.sort = state.sort.key === key ? { key, down: !state.sort.down } : { key, down: !text };
      refresh();
    },
  });
  search.value = state.q;
  search.addEventListener('input', () => { state.q = search.value; refresh(); });
  search.addEventListener('keydown', (e) => { if (e.key === 'Enter') search.blur(); });
  for (const b of document.querySelectorAll('[data-clear], [data-clear-2]')) b.addEventListener('click', clear);
  $('[data-more-button]').addEventListener('click', () => { table.more(); refresh({ keepLimit: true }); });
  for (const b of document.querySelectorAll('button[data-regime]')) b.addEventListener('click', () => {
    const r = b.dataset.regime;
    if (!state.regimes.delete(r)) state.regimes.add(r);
    refresh();
  });
  document.addEventListener('keydown', keys);
}

async function fetchFigure(level) {
  const answer = await fetch(`${figureEl.dataset.roofline}&level=${level}`);
  if (answer.ok) return answer.json();
  figureEl.classList.add('empty');
  figureEl.textContent = `The chart did not come (HTTP ${answer.status}). The table below holds the same numbers.`;
  return null;
}

async function wireChart() {
  const figure = await fetchFigure(state.level);
  if (!figure) return;
  tell(figure);
  plot = roofline(figureEl, figure, {
    onSelect(set) { state.pick = set && set.size ? set : null; refresh(); },
    onPoint(i) { table?.choose(i, { scroll: false }); },
  });
  for (const b of document.querySelectorAll('[data-tool]')) b.addEventListener('click', () => {
    for (const o of b.parentElement.children) o.setAttribute('aria-pressed', String(o === b));
    plot.tool(b.dataset.tool);
  });
  for (const b of document.querySelectorAll('[data-level]')) b.addEventListener('click', () => changeLevel(b.dataset.level));
  await plot.ready;
}

async function changeLevel(level) {
  state.level = level;
  const figure = await fetchFigure(level);
  if (!figure || state.level !== level) return;      // another was asked for since
  tell(figure);
  await plot.show(figure);
  remember();
}

// What the chart draws and what it can't: points far below every roof would flatten it, and are counted here.
function tell(figure) {
  const meta = figure.layout.meta;
  const many = (n) => `${thousands(n)} ${meta.noun}${n === 1 ? '' : 's'}`;
  for (const b of document.querySelectorAll('[data-level]')) b.setAttribute('aria-pressed', String(b.dataset.level === meta.level));
  $('[data-drawn]').textContent = `${thousands(meta.n_plotted)} of ${many(meta.n_groups)}; area is time`;
  $('[data-sums]').hidden = meta.level === 'kernel';
  $('[data-point]').hidden = meta.level !== 'kernel';
  moreRegimes(figure.data.filter((t) => t.meta.role === 'points').map((t) => t.meta.regime));
  const absent = meta.not_plotted.map(({ text, count }) => [text, many(count)]);
  if (meta.below_frame) absent.push(['below the frame', many(meta.below_frame)]);
  if (!absent.length) absent.push([meta.n_groups ? `every ${meta.noun} has its place` : `there is no ${meta.noun}`, '']);
  const make = (name, textContent) => Object.assign(document.createElement(name), { textContent });
  $('[data-absent]').replaceChildren(...absent.flatMap(([text, count]) => [make('dt', text), make('dd', count)]));
}

// Regimes that only steps have are named beside those that filter the table.
function moreRegimes(drawn) {
  const named = [...document.querySelectorAll('button[data-regime]')].map((b) => b.dataset.regime);
  $('[data-more-regimes]').replaceChildren(...drawn.filter((r) => !named.includes(r) && /^[a-z]+$/.test(r)).map((r) => {
    const chip = Object.assign(document.createElement('span'), { className: 'chip' });
    const swatch = Object.assign(document.createElement('i'), { className: `sw r-${r}` });
    chip.append(swatch, r[0].toUpperCase() + r.slice(1));
    return chip;
  }));
}

async function restore() {
  refresh();
  if (state.row === null) return;
  const row = table.choose(state.row, { scroll: false });
  if (row) await toggle(row);
}

wireLinks();
wirePrice($('[data-price]'));
wireWhatIf($('[data-whatif]'));
if (grid) wireTable();
await Promise.all([figureEl ? wireChart() : null, table?.loadRest()]);
if (table) await restore();
document.documentElement.dataset.ready = '1';
