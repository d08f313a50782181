// Colours for figures, read from css/tokens.css: light-dark() is resolved by asking a probe element.
const probe = document.createElement('i');
probe.hidden = true;
document.documentElement.append(probe);

export function token(name) {
  probe.style.color = `var(--${name})`;
  return getComputedStyle(probe).color;
}

export const sans = () => getComputedStyle(document.body).fontFamily;
