// Arithmetic on the colours that the browser resolves: rgb(1, 2, 3), rgba(1, 2, 3, 0.5).
export function alpha(colour, a) {
  const parts = colour.match(/[\d.]+/g);
  if (!parts || parts.length < 3) return colour;
  return `rgba(${parts.slice(0, 3).join(', ')}, ${a})`;
}

export const transparent = (colour) => /^rgba\(.*,\s*0(\.0+)?\)$/.test(colour) || colour === 'transparent';
