import assert from 'node:assert/strict';
import { test } from 'node:test';
import { cross, inside, place, quietest } from './labels.js';

const frame = { w: 600, h: 400 };

test('a lone point is labelled to its right', () => {
  const [found] = place([{ x: 100, y: 100, r: 10, text: 'gemm' }], [], frame);
  assert.equal(found.anchor, 'left');
  assert.equal(found.x, 114);
  assert.equal(found.line, false);
});

test('labels cross neither each other, nor points, nor what is taken', () => {
  const dots = Array.from({ length: 7 }, (_, i) => ({ x: 200 + 18 * i, y: 200 + (i % 2) * 6, r: 9, text: `kernel_${i}` }));
  const taken = [{ x0: 180, x1: 600, y0: 150, y1: 180 }];
  const found = place(dots, taken, frame);
  assert.ok(found.length >= 3);
  for (const [i, a] of found.entries()) {
    for (const b of found.slice(i + 1)) assert.equal(cross(a.box, b.box), false);
    for (const d of dots) assert.equal(cross(a.box, { x0: d.x - d.r, x1: d.x + d.r, y0: d.y - d.r, y1: d.y + d.r }), false);
    for (const t of taken) assert.equal(cross(a.box, t), false);
  }
});

test('no label beats a crowded one', () => {
  const taken = [{ x0: 0, x1: 600, y0: 0, y1: 400 }];
  assert.deepEqual(place([{ x: 300, y: 200, r: 5, text: 'x' }], taken, frame), []);
});

test('a label stays in the frame', () => {
  for (const at of [{ x: 8, y: 8 }, { x: 595, y: 390 }]) {
    for (const f of place([{ ...at, r: 4, text: 'a long kernel name' }], [], frame)) {
      assert.ok(f.box.x0 >= 4 && f.box.x1 <= 596 && f.box.y0 >= 4 && f.box.y1 <= 382);
    }
  }
});

test('the quiet end of a line is away from the points', () => {
  const spot = quietest({ x: 0, y: 100 }, { x: 500, y: 100 }, [{ x: 100, y: 100 }, { x: 140, y: 110 }], 150);
  assert.ok(spot.x > 250);
});

test('a name is written once, at its largest point', () => {
  const dots = [{ x: 100, y: 100, r: 9, text: 'bn' }, { x: 300, y: 200, r: 5, text: 'bn' }, { x: 400, y: 300, r: 4, text: 'mm' }];
  assert.deepEqual(place(dots, [], frame).map((f) => [f.dot.text, f.dot.x]), [['bn', 100], ['mm', 400]]);
});

test('only the stretch inside the frame counts', () => {
  // From 400 px below a frame of 600 x 400 up to its top: the lower half of the line is outside.
  assert.deepEqual(inside({ x: 0, y: 800 }, { x: 600, y: 0 }, frame), { first: .5, last: 1 });
  assert.deepEqual(inside({ x: 10, y: 390 }, { x: 300, y: 10 }, frame), { first: 0, last: 1 });
  assert.deepEqual(inside({ x: 0, y: 50 }, { x: 1200, y: 50 }, frame), { first: 0, last: .5 });
  assert.equal(inside({ x: 0, y: 900 }, { x: 600, y: 500 }, frame), null);
});
