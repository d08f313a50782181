// The page of a run that is still analysed: say how far it is, open it when it is there.
import { get, jobText, waitFor } from './api.js';

const said = document.querySelector('[data-wait]');
if (said?.dataset.wait) {
  const job = await get(`/api/v1/jobs/${said.dataset.wait}`);
  await waitFor(job, (j) => { said.textContent = `${jobText(j)}.`; });
  location.reload();
}
