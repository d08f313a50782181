import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compare, filtered, matcher, step } from './rows.js';
import { fresh } from './state.js';

const row = (i, regime, text, time) => ({ i, regime, text, values: { time, name: text } });
const rows = [row(0, 'compute', 'gemm aten::mm', 5), row(1, 'memory', 'add aten::add', null), row(2, 'memory', 'gemm_small aten::mm', 9)];
const order = (key, down) => [...rows].sort(compare(key, down)).map((r) => r.i);

test('numbers sort both ways and the unknown stays last', () => {
  assert.deepEqual(order('time', true), [2, 0, 1]);
  assert.deepEqual(order('time', false), [0, 2, 1]);
});

test('names sort as words', () => {
  assert.deepEqual(order('name', false), [1, 0, 2]);
});

test('every word of the search must be there', () => {
  const hit = (q) => rows.filter(matcher({ ...fresh(), q })).map((r) => r.i);
  assert.deepEqual(hit('GEMM'), [0, 2]);
  assert.deepEqual(hit('mm small'), [2]);
  assert.deepEqual(hit('nothing'), []);
});

test('regimes and picked rows both narrow', () => {
  const hit = (s) => rows.filter(matcher({ ...fresh(), ...s })).map((r) => r.i);
  assert.deepEqual(hit({ regimes: new Set(['memory']) }), [1, 2]);
  assert.deepEqual(hit({ regimes: new Set(['memory']), pick: new Set([0, 2]) }), [2]);
  assert.deepEqual(hit({ pick: new Set() }), []);
});

test('a page as it opens is not filtered', () => {
  assert.equal(filtered(fresh()), false);
  assert.equal(filtered({ ...fresh(), pick: new Set() }), true);
});

test('moving stays inside the table', () => {
  assert.deepEqual([step(-1, 1, 3), step(0, 1, 3), step(2, 1, 3), step(0, -1, 3), step(0, 1, 0)], [0, 1, 2, 0, -1]);
});
