// The query of an address: what a form answers for stands beside what the rest of the page shows.

export function without(search, names) {
  const out = new URLSearchParams(search);
  for (const name of names) out.delete(name);
  return out;
}

export function text(params) {
  const query = params.toString();
  return query ? `?${query}` : '';
}
