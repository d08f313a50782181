// The few calls that pages make: projects, runs, traces, jobs. Every failure is an Error that says what to do.
export const csrf = () => document.querySelector('meta[name="csrf-token"]').content;

// The words of a problem+json answer, or of an answer that is none.
export function problemText(problem, status) {
  if (!problem || typeof problem !== 'object') return `The server answered ${status}.`;
  const title = problem.title ?? problem.detail;
  if (!title) return `The server answered ${status}.`;
  const where = problem.where ? ` (${problem.where})` : '';
  return [`${title}${where}`, problem.hint].filter(Boolean).map(sentence).join(' ');
}

const sentence = (text) => `${text[0].toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? '' : '.'}`;

export function runName(file) {
  const name = file.replace(/\.(gz|zip)$/i, '').replace(/\.json$/i, '').replace(/\.pt\.trace$|\.trace$/i, '');
  return (name || file).slice(0, 200);
}

// What a job's state means to the person who waits.
export function jobText(job) {
  const words = { queued: 'Waiting for a worker', running: stage(job.stage), done: 'Done', failed: 'The analysis failed', refused: 'Refused' };
  const again = job.attempts > 1 && job.state === 'running' ? `, attempt ${job.attempts} of 3` : '';
  return (words[job.state] ?? job.state) + again;
}

const stage = (name) => ({ starting: 'Starting a worker', analysing: 'Analysing', storing: 'Storing' }[name] ?? 'Analysing');

export const ended = (job) => ['done', 'failed', 'refused'].includes(job.state);

export function bytes(n) {
  if (n >= 1e9) return `${(n / 1e9).toFixed(2)} GB`;
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} MB`;
  return `${Math.max(1, Math.round(n / 1e3))} kB`;
}

export async function post(path, body) {
  const answer = await fetch(path, { method: 'POST', headers: { 'Content-Type': 'application/json', 'X-CSRF-Token': csrf() }, body: JSON.stringify(body) });
  return read(answer);
}

export const get = async (path) => read(await fetch(path, { headers: { Accept: 'application/json' } }));

async function read(answer) {
  const body = await answer.json().catch(() => null);
  if (!answer.ok) throw new Error(problemText(body, answer.status));
  return body;
}

// XMLHttpRequest, since fetch tells nothing about how much has been sent.
export function sendTrace(run, file, onProgress) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('POST', `/api/v1/runs/${run}/traces?filename=${encodeURIComponent(file.name)}`);
    request.setRequestHeader('X-CSRF-Token', csrf());
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.responseType = 'json';
    request.upload.addEventListener('progress', (e) => onProgress(e.loaded, e.total));
    request.addEventListener('load', () => (request.status < 300 ? resolve(request.response.job) : reject(new Error(problemText(request.response, request.status)))));
    request.addEventListener('error', () => reject(new Error('The connection broke while the file was sent. Nothing of it is stored; send it again.')));
    request.send(file);
  });
}

export async function waitFor(job, onState) {
  for (let tries = 0; !ended(job); tries++) {
    onState(job);
    await new Promise((r) => setTimeout(r, Math.min(2000, 250 + 100 * tries)));
    job = await get(`/api/v1/jobs/${job.id}`);
  }
  onState(job);
  return job;
}
