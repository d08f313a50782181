import assert from 'node:assert/strict';
import test from 'node:test';
import { order, pids } from './order.js';

const form = { host: ' node1 ', project: 'demo', run: '', pids: '', much: '3', unit: 'iterations', shapes: 'on' };
const kinds = { shapes: true, stack: false, modules: false, memory: false, keep_trace: false };

test('an order has what the form says and nothing else', () => {
  assert.deepEqual(order(form), { host: 'node1', project: 'demo', pids: [], iterations: 3, ...kinds });
  assert.deepEqual(
    order({ ...form, run: 'nightly', unit: 'duration_ms', much: '500', stack: 'on', shapes: undefined, pids: '12, 13' }),
    { host: 'node1', project: 'demo', run: 'nightly', pids: [12, 13], duration_ms: 500, ...kinds, shapes: false, stack: true },
  );
});

test('processes are parted by spaces or commas', () => {
  assert.deepEqual(pids('4711 4712,4713;  4714'), [4711, 4712, 4713, 4714]);
  assert.deepEqual(pids(''), []);
});

test('what is no number is said before anything is sent', () => {
  assert.throws(() => pids('python'), /A process is a whole number above 0, not “python”/);
  for (const much of ['', '0', '-1', '2.5', '1e3']) assert.throws(() => order({ ...form, much }), /whole number above 0/);
});
