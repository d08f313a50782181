import assert from 'node:assert/strict';
import { test } from 'node:test';
import { alpha, transparent } from './colour.js';
import { digits, paintTrace, si, ticks } from './paint.js';

const token = (name) => ({ memory: 'rgb(230, 159, 0)', 'memory-edge': 'rgb(154, 106, 0)', compute: 'rgb(0, 114, 178)', surface: 'rgb(255, 255, 255)' }[name] ?? 'rgb(1, 2, 3)');
const points = (regime) => ({ customdata: [[4, ''], [7, '']], marker: { size: [46, 6], symbol: ['circle', 'square'] }, meta: { role: 'points', regime } });

test('a colour takes an opacity', () => {
  assert.equal(alpha('rgb(230, 159, 0)', .5), 'rgba(230, 159, 0, 0.5)');
  assert.equal(transparent('rgba(0, 0, 0, 0)'), true);
  assert.equal(transparent('rgb(0, 0, 0)'), false);
});

test('points take the colour of their regime, pale ones an edge', () => {
  assert.equal(paintTrace(points('compute'), token).marker.line.color, 'rgb(255, 255, 255)');
  const memory = paintTrace(points('memory'), token).marker;
  assert.equal(memory.color, 'rgba(230, 159, 0, 0.82)');
  assert.equal(memory.line.color, 'rgb(154, 106, 0)');
});

test('a focus selects by the row of the table, no focus selects nothing', () => {
  assert.deepEqual(paintTrace(points('compute'), token, { focus: new Set([7]) }).selectedpoints, [1]);
  assert.deepEqual(paintTrace(points('compute'), token, { focus: new Set() }).selectedpoints, []);
  assert.equal(paintTrace(points('compute'), token).selectedpoints, undefined);
});

test('a point above the kernels is chosen by any row that it speaks for', () => {
  const ops = { ...points('compute'), customdata: [[0, '', '', null, [7, 9]], [1, '', '', null, [8]]] };
  assert.deepEqual(paintTrace(ops, token, { focus: new Set([9]) }).selectedpoints, [0]);
  assert.deepEqual(paintTrace(ops, token, { focus: new Set([0, 1]) }).selectedpoints, []);
});

test('area stays proportional on a small screen, down to what can be seen', () => {
  assert.deepEqual(paintTrace(points('compute'), token, { scale: .5 }).marker.size, [23, 5]);
});

test('decades are written in full and thinned when there are many', () => {
  assert.deepEqual(ticks([-2, 3]).ticktext, ['0.01', '0.1', '1', '10', '100', '1\u202f000']);
  const many = ticks([-7, 12]);
  assert.ok(many.tickvals.length <= 9);
  assert.equal(many.ticktext[0], '10<sup>−7</sup>');
});

test('roofs are told with a prefix', () => {
  assert.equal(si(15.7e12), '15.7 T');
  assert.equal(si(814e9), '814 G');
  assert.equal(si(3.35e12), '3.35 T');
  assert.equal(digits(989.5), '990');
});
