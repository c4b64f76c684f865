// Finds texts that are cut or overlap, and what is wider than the screen.
(() => {
  const problems = [];
  let checked = 0;
  const say = (...words) => problems.push(innerWidth + ' wide: ' + words.join(' '));
  const ruler = document.createElement('canvas').getContext('2d');
  if (document.documentElement.scrollWidth > innerWidth) say('the page is', document.documentElement.scrollWidth, 'wide');

  // The texts of charts: of both axes, as uPlot places them, and the numbers and texts of marks.
  for (const box of document.querySelectorAll('.plot')) {
    const { plot: u, placed = [], f } = box.chart, name = f.name, px = devicePixelRatio, all = [];
    const { left, top, width, height } = Object.fromEntries(Object.entries(u.bbox).map(([k, v]) => [k, v / px]));
    for (const [i, axis] of u.axes.entries()) {
      ruler.font = Array.isArray(axis.font) ? axis.font[0].replace(/[\d.]+px/, (s) => parseFloat(s) / px + 'px') : '12px system-ui';
      for (const [k, text] of (axis._values ?? []).entries()) {
        if (!text) continue;
        const w = ruler.measureText(text).width, at = u.valToPos(axis._splits[k], i === 0 ? 'x' : 'y');
        all.push(i === 0 ? { text, axis: i, left: left + at - w / 2, right: left + at + w / 2, top: top + height + 6, bottom: top + height + 20 }
          : { text, axis: i, left: left - 8 - w, right: left - 8, top: top + at - 6, bottom: top + at + 6 });
      }
    }
    for (const p of placed) all.push({ axis: 2, ...p });
    checked += all.length;
    for (const [i, a] of all.entries()) {
      if (a.left < -0.5 || a.right > u.width + 0.5 || a.top < -0.5 && a.axis !== 1 || a.bottom > u.height + 0.5) say(name, 'cuts', JSON.stringify(a));
      for (const b of all.slice(i + 1)) {
        if (a.axis === b.axis && a.left < b.right - 0.5 && b.left < a.right - 0.5 && a.top < b.bottom - 0.5 && b.top < a.bottom - 0.5) say(name, 'overlaps', JSON.stringify([a, b]));
      }
    }
  }

  // Texts of the page. What is closed, or scrolls by itself, is left out.
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const unit = /\d[\s\u00a0]((?:[kMGT]|[numkM]?s|h|B|[KMGT]iB)\b|%|\/s)/g;
  const one = /^[<>≥=~\s]*[-\d.,]+ ?(k|M|G|ms|us|ns|s|%|KiB|MiB|GiB|B)?(\/s)?$/;
  while (walk.nextNode()) {
    const node = walk.currentNode, e = node.parentElement, text = node.data.trim();
    if (!text || !e.checkVisibility({ visibilityProperty: true }) || e.closest('.screen-reader,.skip,pre,script,style,svg,noscript,option,details:not([open])')) continue;
    const range = document.createRange();
    for (const m of e.closest('button,select') ? [] : node.data.matchAll(unit)) {
      range.setStart(node, m.index);
      range.setEnd(node, m.index + m[0].length);
      if (new Set([...range.getClientRects()].filter((r) => r.width > 0).map((r) => Math.round(r.top))).size > 1) say('wraps within a sentence:', m[0], 'of', text.slice(0, 60));
    }
    range.selectNodeContents(node);
    const boxes = [...range.getClientRects()].filter((r) => r.width > 0);
    if (boxes.length === 0) continue;
    const right = Math.max(...boxes.map((r) => r.right)), left = Math.min(...boxes.map((r) => r.left));
    const scrolls = e.closest('.scroll');
    if (right > innerWidth + 1 || left < -1) say('cut at the edge:', text.slice(0, 60));
    if (scrolls && right > scrolls.getBoundingClientRect().right + 1) say('cut in a table:', text.slice(0, 60));
    if ((one.test(text) || e.matches('.value,.pill,.word')) && new Set(boxes.map((r) => Math.round(r.top))).size > 1) say('wraps:', text);
  }
  const first = document.querySelector('.plot').getBoundingClientRect();
  if (innerWidth === 1280 && innerHeight === 800 && first.top + scrollY >= 800) say('the first chart begins at', first.top + scrollY);
  return { Problems: problems.slice(0, 40), Checked: checked };
})()
