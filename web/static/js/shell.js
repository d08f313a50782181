// Theme switch, search key, help, copy buttons, section tabs. Every page loads it.
const root = document.documentElement;
const help = document.querySelector('dialog.help');
const dark = () => (root.dataset.theme ?? (matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light')) === 'dark';

document.querySelector('[data-theme-switch]').addEventListener('click', () => {
  root.dataset.theme = dark() ? 'light' : 'dark';
  try { localStorage.setItem('rooflight-theme', root.dataset.theme); } catch { /* a browser that keeps nothing still switches */ }
  document.dispatchEvent(new Event('themechange'));
});

document.querySelector('[data-help]').addEventListener('click', () => help.showModal());

document.addEventListener('keydown', (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey) return;
  const typing = e.target.closest('input, textarea');
  if (e.key === 'Escape' && typing) typing.blur();
  if (typing || help.open) return;
  if (e.key === '/') {
    e.preventDefault();
    document.querySelector('[data-search]')?.focus();
  }
  if (e.key === '?') help.showModal();
});

document.addEventListener('click', async (e) => {
  const button = e.target.closest('[data-copy]');
  if (!button) return;
  const said = button.textContent;
  button.textContent = (await copied(button)) ? 'Copied' : 'Press Ctrl+C';
  setTimeout(() => { button.textContent = said; }, 1500);
});

// Off loopback and without TLS a browser has no clipboard: select the text instead.
async function copied(button) {
  try {
    await navigator.clipboard.writeText(button.dataset.copy);
    return true;
  } catch {
    const text = button.previousElementSibling;
    if (text) getSelection().selectAllChildren(text);
    return false;
  }
}

const tabs = [...document.querySelectorAll('.tabs a[href^="#"]')];
const seen = new IntersectionObserver((entries) => {
  for (const e of entries) if (e.isIntersecting) {
    for (const t of tabs) {
      if (t.hash === `#${e.target.id}`) t.setAttribute('aria-current', 'true');
      else t.removeAttribute('aria-current');
    }
  }
}, { rootMargin: '-110px 0px -70% 0px' });
for (const t of tabs) {
  const section = document.querySelector(t.hash);
  if (section) seen.observe(section);
}
