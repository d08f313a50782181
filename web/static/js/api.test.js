import assert from 'node:assert/strict';
import { test } from 'node:test';
import { bytes, ended, jobText, problemText, runName } from './api.js';

test('a run is named by its file without the endings of traces', () => {
  assert.equal(runName('v100_resnet50.pt.trace.json.gz'), 'v100_resnet50');
  assert.equal(runName('rank0.json'), 'rank0');
  assert.equal(runName('nightly.json.zip'), 'nightly');
  assert.equal(runName('.json'), '.json');
  assert.equal(runName('x'.repeat(300)).length, 200);
});

test('a problem is told in sentences: what, where, what to do', () => {
  const told = { title: 'not a trace: it has no traceEvents', detail: 'all of it', where: 'a.json', hint: 'send what the profiler wrote' };
  assert.equal(problemText(told, 400), 'Not a trace: it has no traceEvents (a.json). Send what the profiler wrote.');
  assert.equal(problemText({ title: 'too large', where: '', hint: '' }, 413), 'Too large.');
  assert.equal(problemText({ detail: 'only that' }, 400), 'Only that.');
  assert.equal(problemText({}, 500), 'The server answered 500.');
  assert.equal(problemText(null, 502), 'The server answered 502.');
});

test('a job tells what is going on', () => {
  assert.equal(jobText({ state: 'queued' }), 'Waiting for a worker');
  assert.equal(jobText({ state: 'running', stage: 'storing', attempts: 2 }), 'Storing, attempt 2 of 3');
  assert.equal(ended({ state: 'refused' }), true);
  assert.equal(ended({ state: 'running' }), false);
});

test('sizes are told with a unit', () => {
  assert.equal(bytes(1_159_569), '1.2 MB');
  assert.equal(bytes(200), '1 kB');
  assert.equal(bytes(2.5e9), '2.50 GB');
});
