// SPDX-License-Identifier: Apache-2.0
// What can be told apart by those who see little: contrasts, as WCAG 2 computes them. Text must have 4.5 to 1, lines 3.

// In the page, before anything else: notes the colours of whatever is stroked or written on a canvas.
export const noteInk = () => {
  const proto = CanvasRenderingContext2D.prototype,
    seen = (window.inked = { line: {}, text: {} });
  for (const [name, kind, style] of [
    ["stroke", "line", "strokeStyle"],
    ["fillText", "text", "fillStyle"],
  ]) {
    const plain = proto[name];
    proto[name] = function (...words) {
      seen[kind][this[style]] = (seen[kind][this[style]] || 0) + 1;
      return plain.apply(this, words);
    };
  }
};

// In the page, too: { n: how many contrasts were computed, out: those that are too low }.
const look = () => {
  const numbers = c => {
    const hex = c.match(/^#(..)(..)(..)$/);
    const n = hex ? hex.slice(1).map(v => parseInt(v, 16)) : c.match(/[\d.]+/g).map(Number);
    return n.length > 3 ? n : [...n, 1];
  };
  const light = rgb =>
    rgb
      .slice(0, 3)
      .map(v => v / 255)
      .map(v => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ratio = (a, b) => {
    const [more, less] = [light(numbers(a)), light(numbers(b))].sort((x, y) => y - x);
    return (more + 0.05) / (less + 0.05);
  };
  const behind = e => {
    for (; e; e = e.parentElement) {
      const c = getComputedStyle(e).backgroundColor,
        opaque = numbers(c)[3];
      if (opaque === 1) return c;
      if (opaque > 0) throw new Error("a background that is half seen");
    }
    return "#ffffff";
  };
  const out = [];
  let n = 0;
  const must = (least, a, b, what) => {
    n++;
    if (!(ratio(a, b) >= least)) out.push(`${ratio(a, b).toFixed(2)} ${what}`);
  };
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const e = walk.currentNode.parentElement,
      s = getComputedStyle(e),
      text = walk.currentNode.data;
    if (!text.trim() || /SCRIPT|NOSCRIPT/.test(e.tagName) || !e.getClientRects().length || s.visibility !== "visible")
      continue;
    must(s.opacity === "1" ? 4.5 : Infinity, s.color, behind(e), `${e.className} ${text.slice(0, 30)}`);
  }
  // On a canvas there is the page behind it, or the band of a phase. Lines that are half seen go with one that is not.
  const css = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  for (const [kind, least] of [
    ["line", 3],
    ["text", 4.5],
  ])
    for (const color in window.inked ? window.inked[kind] : {})
      if (color !== css("line") && numbers(color)[3] === 1)
        for (const on of ["page", "band"]) must(least, color, css(on), `${kind} ${color} on --${on}`);
  return { n, out };
};
export const faint = page => page.evaluate(look);
