// The list of runs: drop traces anywhere, see them sent and analysed, land on the page.
import { bytes, get, jobText, post, problemText, runName, sendTrace, waitFor } from './api.js';
import { step } from './rows.js';

const list = document.querySelector('[data-uploads]');
const project = document.querySelector('[data-project]');
const asRanks = document.querySelector('[data-ranks]');

function line(file) {
  const row = document.createElement('div');
  row.className = 'upload';
  const name = Object.assign(document.createElement('span'), { className: 'mono wrap-any', textContent: file.name });
  const said = Object.assign(document.createElement('span'), { className: 'soft' });
  const bar = document.createElement('progress');
  bar.max = 1;
  bar.value = 0;
  bar.setAttribute('aria-label', `Sending ${file.name}`);
  row.append(name, said, bar);
  list.append(row);
  return {
    say(text) { said.textContent = text; },
    sent(done, total) { bar.value = total ? done / total : 0; said.textContent = `${bytes(done)} of ${bytes(total)} sent`; },
    busy() { bar.removeAttribute('value'); },
    done(run) {
      bar.remove();
      said.replaceChildren(Object.assign(document.createElement('a'), { href: `/runs/${run}`, textContent: 'Open the run' }));
    },
    failed(text) {
      bar.remove();
      row.dataset.failed = '';
      said.replaceChildren(Object.assign(document.createElement('span'), { className: 'tag bad', textContent: 'Not accepted' }));
      row.append(Object.assign(document.createElement('p'), { className: 'why', textContent: text }));
    },
  };
}

async function send(file, run, row) {
  const job = await sendTrace(run, file, (done, total) => row.sent(done, total));
  row.busy();
  const end = await waitFor(job, (j) => row.say(jobText(j)));
  if (end.state !== 'done') throw new Error(end.problem ? problemText(end.problem) : jobText(end));
  row.done(run);
  return run;
}

async function makeRun(name) {
  const made = await post('/api/v1/projects', { name: project.value.trim() || 'default' });
  return (await post(`/api/v1/projects/${made.id}/runs`, { name })).id;
}

async function upload(files) {
  const together = asRanks.checked && files.length > 1;
  let shared = null, landed = [];
  for (const file of files) {
    const row = line(file);
    try {
      row.say('Starting');
      const run = together ? (shared ??= await makeRun(runName(file.name))) : await makeRun(runName(file.name));
      landed.push(await send(file, run, row));
    } catch (error) {
      row.failed(error.message);
    }
  }
  const runs = new Set(landed);
  if (runs.size === 1 && landed.length === files.length) location.assign(`/runs/${landed[0]}`);
}

const choose = document.querySelector('[data-files]');
choose.addEventListener('change', () => { const files = [...choose.files]; choose.value = ''; if (files.length) upload(files); });
document.querySelector('[data-drop]').addEventListener('submit', (e) => e.preventDefault());

const carriesFiles = (e) => [...(e.dataTransfer?.types ?? [])].includes('Files');
document.addEventListener('dragover', (e) => { if (carriesFiles(e)) { e.preventDefault(); document.body.classList.add('dropping'); } });
document.addEventListener('dragleave', (e) => { if (!e.relatedTarget) document.body.classList.remove('dropping'); });
document.addEventListener('drop', (e) => {
  if (!carriesFiles(e)) return;
  e.preventDefault();
  document.body.classList.remove('dropping');
  upload([...e.dataTransfer.files]);
});

// j and k walk over the runs; Enter opens the one that has the focus, as it opens any link.
document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || (e.key !== 'j' && e.key !== 'k')) return;
  if (e.target.closest('input, textarea, select, dialog')) return;
  const links = [...document.querySelectorAll('[data-runs] .rname a')];
  links[step(links.indexOf(document.activeElement), e.key === 'j' ? 1 : -1, links.length)]?.focus();
});

// Runs that others sent and that are still analysed: look again until one has ended.
const pending = [...document.querySelectorAll('[data-state="analyzing"]')].map((tr) => tr.dataset.run);
async function watch() {
  const states = await Promise.all(pending.map((id) => get(`/api/v1/runs/${id}`).then((r) => r.state, () => 'analyzing')));
  const sending = list.querySelector('progress');
  if (states.some((s) => s !== 'analyzing') && !sending) location.reload();
  else setTimeout(watch, 3000);
}
if (pending.length) setTimeout(watch, 2000);
document.documentElement.dataset.ready = '1';
