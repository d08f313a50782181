// The what-if form: its answers are in the address, beside whatever else the page shows.

import { text, without } from './query.js';

const NAMES = ['gpu', 'dtype', 'roofs_reached', 'fused', 'overlapped', 'input_ready', 'there', 'there_price'];

// The query with what the form says in place of what was asked before; an instance of another GPU is dropped.
export function question(search, fields) {
  const before = new URLSearchParams(search);
  const out = without(search, NAMES);
  for (const name of NAMES) {
    const value = (fields[name] ?? '').trim();
    if (value) out.set(name, value);
  }
  if (out.has('there_price') || (before.get('gpu') ?? '') !== (out.get('gpu') ?? '')) out.delete('there');
  return text(out);
}

export function unasked(search) {
  return text(without(search, NAMES));
}

export function wireWhatIf(form) {
  if (!form) return;
  const go = (query) => location.assign(`${location.pathname}${query}#whatif`);
  const [select, input] = [form.querySelector('[name=there]'), form.querySelector('[name=there_price]')];
  select?.addEventListener('change', () => { if (select.value) input.value = ''; });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const query = question(location.search, Object.fromEntries(new FormData(form)));
    if (query === location.search) location.hash = '#whatif';
    else go(query);
  });
  form.querySelector('[data-unask]')?.addEventListener('click', (e) => {
    e.preventDefault();
    go(unasked(location.search));
  });
}
