// Captures: order one, and follow those that are pending.
import { post } from './api.js';
import { order } from './order.js';

const form = document.querySelector('[data-order]');
const rows = document.querySelector('[data-rows]');
const told = document.querySelector('[data-told]');
const problem = document.querySelector('[data-problem]');
const LOOK_MS = 2000;
let timer = 0;

const pending = () => Number(rows.querySelector('[data-pending]')?.dataset.pending ?? 0);

async function look() {
  clearTimeout(timer);
  const query = rows.dataset.host ? `?host=${encodeURIComponent(rows.dataset.host)}` : '';
  const answer = await fetch(`/captures/rows${query}`).catch(() => null);
  if (answer?.ok) {
    const html = await answer.text();
    if (html !== look.last) rows.innerHTML = look.last = html;      // our own template, which escapes every name
    told.textContent = `${pending() || 'none'} pending; times are UTC`;
  } else told.textContent = `The server did not answer${answer ? ` (HTTP ${answer.status})` : ''}; asking again`;
  if (pending() || !answer?.ok) timer = setTimeout(look, LOOK_MS);
}

function say(text) {
  problem.textContent = text;
  problem.hidden = !text;
}

form.addEventListener('submit', async (e) => {
  e.preventDefault();
  const button = form.querySelector('[type=submit]');
  button.disabled = true;
  say('');
  try {
    const wanted = order(Object.fromEntries(new FormData(form)));
    const project = await post('/api/v1/projects', { name: wanted.project });
    await post('/api/v1/captures', { ...wanted, project: project.id });
    await look();
  } catch (error) {
    say(error.message);
  } finally {
    button.disabled = false;
  }
});

if (pending()) timer = setTimeout(look, LOOK_MS);
document.documentElement.dataset.ready = '1';
