// The charts of a report, in the place of its still pictures. Nothing is fetched, and external text
// only becomes text nodes.
(() => {
  'use strict';
  const { figures, xs } = JSON.parse(document.getElementById('data').textContent);
  const { make } = charts;
  const root = document.documentElement;
  const said = make('div', { class: 'screen-reader', 'aria-live': 'polite', id: 'said' });
  const at = make('output', { id: 'at', 'aria-live': 'off' });
  const shown = make('output', { id: 'shown' }, 'the whole run');
  document.querySelector('main').append(said);

  const group = new charts.Group({
    said,
    at: (text) => { at.textContent = text; },
    zoomed: (lo, hi) => { shown.textContent = lo === group.whole[0] && hi === group.whole[1] ? 'the whole run' : format(lo, 's') + ' to ' + format(hi, 's'); },
  });

  // --- The figures, as data.go encodes them ---

  for (const f of figures) {
    for (const s of f.series) {
      s.xs = xs[s.x];
      // Two steps at one x are one above the other.
      if (s.style === 1 && s.xs.some((x, i) => x === s.xs[i + 1])) s.xs = s.xs.map((x, i, all) => (x === all[i + 1] ? x * (1 - 1e-9) : x));
    }
  }
  // Rows of a map are stored as differences. Opening the page does not wait for them.
  function unpack(h) {
    h.columns = h.columns.map(([from, to, ...cells]) => {
      const c = { from, to, rows: [], counts: [] };
      for (let i = 0, r = 0; i < cells.length; i += 2) {
        c.rows.push(r += cells[i]);
        c.counts.push(cells[i + 1]);
      }
      return c;
    });
    h.mids = h.columns.map((c) => (c.from + c.to) / 2);
  }
  const timed = figures.filter((f) => f.shared);
  if (timed.length > 0) {
    const ends = timed.flatMap((f) => [...(f.x.max ? [f.x.min ?? 0, f.x.max] : []), ...f.series.flatMap((s) => (s.xs.length ? [s.xs[0], s.xs.at(-1)] : []))]);
    const [lo, hi] = [Math.min(...ends), Math.max(...ends)];
    group.whole = group.range = hi > lo ? [lo, hi] : [0, 1];
  }
  function draw(f) {
    const figure = document.getElementById('f-' + f.name), plot = figure.querySelector('.plot'), still = plot.querySelector('svg');
    if (f.heat) unpack(f.heat);
    f.wide = figure.classList.contains('whole');
    const words = make('p', { class: 'screen-reader', id: 'd-' + f.name }, still.querySelector('desc').textContent);
    plot.setAttribute('aria-describedby', words.id);
    plot.replaceChildren();
    plot.after(words);
    return new charts.Chart(f, plot, figure.querySelector('.legend'), group);
  }

  // --- The page ---

  page.colors(document.getElementById('options'), () => group.repaint());
  const tools = document.getElementById('tools');
  if (timed.length > 0) {
    tools.append(
      page.button('Whole run', () => group.all()), page.button('Zoom in', () => group.zoomBy(0.5)), page.button('Zoom out', () => group.zoomBy(2)),
      page.button('Earlier', () => group.pan(-0.5)), page.button('Later', () => group.pan(0.5)), shown);
  }
  tools.append(at);
  tools.hidden = timed.length === 0;

  // What is visible is drawn at once. The other charts are drawn when the browser is idle, for
  // printing and for searching in the page.
  const visible = (f) => {
    const r = document.getElementById('f-' + f.name).getBoundingClientRect();
    return r.top < innerHeight + 400 && r.bottom > -400;
  };
  const rest = [], now = [];
  for (const f of figures) (visible(f) ? now : rest).push(f);
  now.forEach(draw);
  root.dataset.ready = String(performance.now());
  const idle = (f) => (globalThis.requestIdleCallback ? requestIdleCallback(f, { timeout: 100 }) : setTimeout(f, 50));
  const next = () => {
    if (rest.length === 0) { root.dataset.drawn = 'all'; return; }
    draw(rest.shift());
    idle(next);
  };
  idle(next);
})();
