// Sorting and filtering of kernel rows. Pure: a row is {i, regime, text, values: {key: number | string | null}}.

export function compare(key, down) {
  const sign = down ? -1 : 1;
  return (a, b) => {
    const x = a.values[key] ?? null, y = b.values[key] ?? null;
    if (x === null || y === null) return x === y ? a.i - b.i : x === null ? 1 : -1;     // the unknown last, both ways
    if (x === y) return a.i - b.i;
    return (typeof x === 'string' ? x.localeCompare(y) : x - y) * sign;
  };
}

// Every word must be there; a row outside the picked ones or the chosen regimes is out.
export function matcher(state) {
  const words = state.q.toLowerCase().split(/\s+/).filter(Boolean);
  return (row) =>
    (!state.pick || state.pick.has(row.i)) &&
    (!state.regimes.size || state.regimes.has(row.regime)) &&
    words.every((w) => row.text.includes(w));
}

export const filtered = (state) => Boolean(state.q.trim() || state.regimes.size || state.pick);

// Where j and k go from row `at` among `n`; from nowhere, to the first.
export const step = (at, by, n) => (n === 0 ? -1 : at < 0 ? 0 : Math.max(0, Math.min(n - 1, at + by)));
