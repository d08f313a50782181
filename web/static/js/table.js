// The kernel table: the rows that the server wrote, sorted, filtered and shown 200 at a time.
import { compare, matcher, step } from './rows.js';

const PAGE = 200;

export function kernelTable(el, { onRow, onOpen, onSort }) {
  const body = el.tBodies[0];
  const keys = [...el.tHead.rows[0].cells].map((th) => th.querySelector('[data-sort]')?.dataset.sort ?? null);
  let rows = read([...body.rows]), shown = rows, limit = PAGE, selected = null, detail = null, asked = 0;

  function read(trs) {
    return trs.map((tr) => ({ i: Number(tr.dataset.i), regime: tr.dataset.regime, text: words(tr), values: values(tr), tr }));
  }

  function words(tr) {
    const [name, regime] = tr.cells;
    return `${name.textContent} ${name.title} ${regime.textContent}`.toLowerCase();
  }

  function values(tr) {
    const out = {};
    keys.forEach((key, c) => {
      if (!key) return;
      const v = tr.cells[c].dataset.v;
      out[key] = v === undefined ? tr.cells[c].textContent.trim() : v === '' ? null : Number(v);
    });
    return out;
  }

  // What the first answer did not hold comes as rows made by the same template.
  async function loadRest() {
    if (Number(el.dataset.held) <= rows.length) return;
    const answer = await fetch(el.dataset.more);
    if (!answer.ok) throw new Error(`the remaining rows did not come: ${answer.status}`);
    const holder = document.createElement('template');
    holder.innerHTML = await answer.text();
    const more = [...holder.content.querySelectorAll('tr')];
    body.append(...more);
    rows = rows.concat(read(more));
  }

  function show(state, { keepLimit = false } = {}) {
    if (!keepLimit) limit = PAGE;
    const fits = matcher(state);
    rows.sort(compare(state.sort.key, state.sort.down));
    shown = rows.filter(fits);
    const visible = new Set(shown.slice(0, limit));
    detail?.remove();
    for (const r of rows) r.tr.hidden = !visible.has(r);
    body.append(...rows.map((r) => r.tr));
    if (detail && selected && !selected.tr.hidden) selected.tr.after(detail);
    markSort(state.sort);
    return { shown: shown.length, visible: visible.size, held: rows.length };
  }

  function markSort(sort) {
    for (const th of el.tHead.rows[0].cells) {
      const key = th.querySelector('[data-sort]')?.dataset.sort;
      if (key === sort.key) th.setAttribute('aria-sort', sort.down ? 'descending' : 'ascending');
      else th.removeAttribute('aria-sort');
    }
  }

  function select(row, { scroll = true } = {}) {
    selected?.tr.removeAttribute('aria-selected');
    selected = row;
    row?.tr.setAttribute('aria-selected', 'true');
    if (row && scroll) row.tr.scrollIntoView({ block: 'nearest' });
    onRow(row);
  }

  function close() {
    asked++;
    detail?.remove();
    detail = null;
  }

  async function open(row) {
    close();
    const mine = asked;
    const answer = await fetch(`${el.dataset.detail}${row.i}?rank=${el.dataset.rank}`);
    if (mine !== asked || !answer.ok) return;
    const tr = document.createElement('tr');
    const td = document.createElement('td');
    tr.className = 'detail';
    td.colSpan = el.tHead.rows[0].cells.length;
    td.innerHTML = await answer.text();      // our own template, which escapes every name
    if (mine !== asked) return;
    tr.append(td);
    row.tr.after(tr);
    detail = tr;
  }

  const toggle = (row) => (detail?.previousElementSibling === row.tr ? close() : open(row));
  const byIndex = (i) => rows.find((r) => r.i === i);

  el.tHead.addEventListener('click', (e) => {
    const key = e.target.closest('[data-sort]')?.dataset.sort;
    if (key) onSort(key);
  });
  body.addEventListener('click', (e) => {
    const tr = e.target.closest('tr');
    if (!tr || tr.classList.contains('detail') || getSelection().toString()) return;
    const row = byIndex(Number(tr.dataset.i));
    select(row, { scroll: false });
    onOpen(row);
  });

  return {
    loadRest, show, close, toggle,
    more() { limit += PAGE; },
    move(by) { const visible = shown.slice(0, limit); select(visible[step(visible.indexOf(selected), by, visible.length)] ?? null); },
    selected: () => selected,
    openIndex() { return detail ? Number(detail.previousElementSibling.dataset.i) : null; },
    indices: () => new Set(shown.map((r) => r.i)),
    choose(i, options) { const row = byIndex(i); if (row) select(row, options); return row ?? null; },
  };
}
