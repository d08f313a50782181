import assert from 'node:assert/strict';
import { test } from 'node:test';
import { format, fresh, merge, parse, readRanges, writeRanges } from './state.js';

test('an address without a query is the page as it opens', () => {
  assert.deepEqual(parse(''), fresh());
  assert.equal(format(fresh(), ''), '');
});

test('what is formatted is parsed to the same state', () => {
  const state = { q: 'a&b <4>', regimes: new Set(['memory', 'latency']), sort: { key: 'p99', down: false }, pick: new Set([0, 1, 2, 7]), row: 3, level: 'step' };
  assert.deepEqual(parse(format(state, '')), { ...state, regimes: new Set(['latency', 'memory']) });
});

test('rank and step belong to the server and pass through', () => {
  assert.equal(format({ ...fresh(), q: 'gemm' }, '?rank=2&step=7&q=old'), '?rank=2&step=7&q=gemm');
});

test('runs of indices are written as ranges', () => {
  assert.equal(writeRanges(new Set([9, 2, 0, 1, 3])), '0-3.9');
  assert.deepEqual(readRanges('0-3.9'), new Set([0, 1, 2, 3, 9]));
  assert.equal(writeRanges(new Set()), '');
});

test('an empty pick is a pick of nothing, not no pick', () => {
  assert.equal(format({ ...fresh(), pick: new Set() }, ''), '?pick=');
  assert.deepEqual(parse('?pick=').pick, new Set());
  assert.equal(parse('').pick, null);
});

test('a hostile query gives the page as it opens, quickly', () => {
  const state = parse('?pick=0-9999999.x.1-2-3.-4&row=1e9&sort=__proto__&regime=');
  assert.deepEqual(state.pick, new Set());
  assert.equal(state.row, null);
  assert.deepEqual(state.sort, { key: 'time', down: true });
  assert.equal(state.regimes.size, 0);
});

test('a link keeps what the page shows and changes its own values', () => {
  assert.equal(merge('?rank=0&q=gemm', '?rank=0&step=7'), '?rank=0&q=gemm&step=7');
  assert.equal(merge('?rank=0&step=7&q=gemm', '?rank=0', ['step']), '?rank=0&q=gemm');
});

test('another rank drops picked rows, since its indices are others', () => {
  assert.equal(merge('?rank=0&pick=0-3&row=2&step=7&q=gemm', '?rank=1'), '?rank=1&q=gemm');
});

test('the level of the chart is one that there is, and silent where it is the first', () => {
  assert.equal(parse('?level=op').level, 'op');
  assert.equal(parse('?level=constructor').level, 'kernel');
  assert.equal(format({ ...fresh(), level: 'module' }, '?rank=1&level=op'), '?rank=1&level=module');
  assert.equal(format(fresh(), '?level=op'), '');
});
