// The price that money is shown at: in the address, and remembered for the next run that is opened.

import { text, without } from './query.js';

const KEPT = 'rooflight-price';
const NAMES = ['price', 'currency', 'instance', 'provider', 'region'];

// The query with what the form says in place of the price that it had.
export function chosen(search, fields) {
  const out = without(search, NAMES);
  for (const name of NAMES) {
    const value = (fields[name] ?? '').trim();
    if (value && !(name === 'instance' && (fields.price ?? '').trim())) out.set(name, value);
  }
  return text(out);
}

// The query with the remembered price; null when it has one of its own, or none is remembered.
export function recalled(search, kept) {
  const now = new URLSearchParams(search), before = new URLSearchParams(kept ?? '');
  if (NAMES.some((name) => now.has(name)) || !NAMES.some((name) => before.get(name))) return null;
  for (const name of NAMES) if (before.get(name)) now.set(name, before.get(name));
  return text(now);
}

// The price alone, as it is remembered.
export function priceOf(search) {
  const given = new URLSearchParams(search), out = new URLSearchParams();
  for (const name of NAMES) if (given.get(name)) out.set(name, given.get(name));
  return out.toString();
}

export function forgotten(search) {
  return text(without(search, NAMES));
}

export function wirePrice(form) {
  if (!form) return;
  const again = recalled(location.search, read());
  if (again !== null) { location.replace(location.pathname + again + location.hash); return; }
  const invalid = form.querySelector('[aria-invalid]');
  if (!invalid && priceOf(location.search)) keep(priceOf(location.search));
  const [select, input] = [form.querySelector('select'), form.querySelector('input[name=price]')];
  // One of the two: the last that was touched.
  select?.addEventListener('change', () => { if (select.value) input.value = ''; });
  input.addEventListener('input', () => { if (input.value && select) select.value = ''; });
  form.addEventListener('submit', (e) => {
    e.preventDefault();
    const query = chosen(location.search, Object.fromEntries(new FormData(form)));
    if (!priceOf(query)) keep('');
    location.assign(location.pathname + query + '#findings');
  });
  form.querySelector('[data-forget]')?.addEventListener('click', (e) => {
    e.preventDefault();
    keep('');
    location.assign(location.pathname + forgotten(location.search) + '#findings');
  });
}

function read() {
  try { return localStorage.getItem(KEPT); } catch { return null; }
}

function keep(value) {
  try {
    if (value) localStorage.setItem(KEPT, value);
    else localStorage.removeItem(KEPT);
  } catch { /* a browser that keeps nothing still shows this page's money */ }
}
