// From what the form of captures holds to an order, or an Error that says what is wrong. Pure: no DOM.

const KINDS = ['shapes', 'stack', 'modules', 'memory', 'keep_trace'];

export function order(fields) {
  const out = { host: text(fields.host), project: text(fields.project) };
  if (text(fields.run)) out.run = text(fields.run);
  out.pids = pids(text(fields.pids));
  out[fields.unit === 'duration_ms' ? 'duration_ms' : 'iterations'] = whole(text(fields.much), 'How much is recorded');
  for (const kind of KINDS) out[kind] = fields[kind] === 'on';
  return out;
}

export function pids(said) {
  return said.split(/[\s,;]+/).filter(Boolean).map((word) => whole(word, 'A process'));
}

const text = (value) => (value ?? '').trim();

function whole(word, what) {
  if (!/^[1-9]\d{0,9}$/.test(word)) throw new Error(`${what} is a whole number above 0, not “${word.slice(0, 40)}”.`);
  return Number(word);
}
