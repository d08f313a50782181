import assert from 'node:assert/strict';
import test from 'node:test';
import { question, unasked } from './whatif.js';

test('the form replaces what was asked and leaves the rest', () => {
  assert.equal(question('?rank=1&price=2&fused=true', { gpu: 'h200-sxm', dtype: '', rank: '1' }), '?rank=1&price=2&gpu=h200-sxm');
});

test('an instance of the GPU before is not that of the next one', () => {
  assert.equal(question('?gpu=a100&there=p4', { gpu: 'h100', there: 'p4' }), '?gpu=h100');
  assert.equal(question('?gpu=a100', { gpu: 'a100', there: 'p4' }), '?gpu=a100&there=p4');
});

test('an amount goes before an instance', () => {
  assert.equal(question('?gpu=a100', { gpu: 'a100', there: 'p4', there_price: ' 3 ' }), '?gpu=a100&there_price=3');
});

test('clearing leaves price and rank', () => {
  assert.equal(unasked('?rank=1&price=2&gpu=a100&there_price=3&overlapped=true'), '?rank=1&price=2');
  assert.equal(unasked('?gpu=a100'), '');
});
