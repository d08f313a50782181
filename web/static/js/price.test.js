import assert from 'node:assert/strict';
import test from 'node:test';
import { chosen, forgotten, priceOf, recalled } from './price.js';

test('the form replaces the price and leaves the rest', () => {
  assert.equal(chosen('?rank=1&price=2', { price: '3.60', instance: '', rank: '1' }), '?rank=1&price=3.60');
  assert.equal(chosen('?price=2', { price: '', instance: 'p5.48xlarge@us-east-1' }), '?instance=p5.48xlarge%40us-east-1');
});

test('an amount goes before an instance', () => {
  assert.equal(chosen('', { price: '4', instance: 'a' }), '?price=4');
});

test('an empty form takes the price away', () => {
  assert.equal(chosen('?price=2', { price: ' ' }), '');
  assert.equal(forgotten('?step=3&instance=a&region=b'), '?step=3');
});

test('a remembered price is used only where none is named', () => {
  assert.equal(recalled('?rank=1', 'price=2'), '?rank=1&price=2');
  assert.equal(recalled('?price=3', 'price=2'), null);
  assert.equal(recalled('?instance=', 'price=2'), null);
  assert.equal(recalled('', null), null);
  assert.equal(recalled('', 'evil=1'), null);
});

test('only the price is remembered', () => {
  assert.equal(priceOf('?rank=1&price=2&row=3'), 'price=2');
  assert.equal(priceOf('?rank=1'), '');
});
