'use strict';
// The interactive pictures of a report. Everything is drawn from the page's data at
// the window's width. Nothing is fetched, and external text only becomes text
// nodes.
(() => {
  const data = JSON.parse(document.getElementById('data').textContent);
  const NS = 'http://www.w3.org/2000/svg';
  const root = document.documentElement;
  const STEPS = 1, BARS = 2, DOTS = 3, RANGES = 5, LEVELS = 10;

  function make(tag, attributes, text) {
    const e = document.createElement(tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  }
  function svg(tag, attributes, text) {
    const e = document.createElementNS(NS, tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  }

  // --- Number formats, the same as in the program ---

  // Three significant digits without trailing zeros or exponent.
  function digits(v) {
    const s = v.toPrecision(3), n = Number(s);
    if (n !== 0 && Math.abs(n) < 1e-6) return s;
    return n.toLocaleString('en-US', { useGrouping: false, maximumSignificantDigits: 3 });
  }
  function scaled(v, by, names) {
    let i = 0;
    while (i < names.length - 1 && Number(v.toPrecision(3)) >= by) { v /= by; i++; }
    return digits(v) + (names[i] ? ' ' + names[i] : '');
  }
  const short = (v) => scaled(v, 1000, ['', 'k', 'M', 'G', 'T']);
  const pad = (n) => String(n).padStart(2, '0');
  function duration(ns) {
    if (ns === 0) return '0 s';
    for (const [name, unit, below] of [['ns', 1, 1000], ['us', 1e3, 1000], ['ms', 1e6, 1000], ['s', 1e9, 60]]) {
      const v = Number((ns / unit).toPrecision(3));
      if (v < below) return digits(v) + ' ' + name;
    }
    const s = Math.round(ns / 1e9);
    if (s < 3600) return Math.floor(s / 60) + 'm' + pad(s % 60) + 's';
    const m = Math.round(ns / 6e10);
    if (m < 1440) return Math.floor(m / 60) + 'h' + pad(m % 60) + 'm';
    const h = Math.round(ns / 3.6e12);
    return Math.floor(h / 24) + 'd' + pad(h % 24) + 'h';
  }
  function size(v) {
    v = Math.floor(v);
    for (const u of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
      const n = Number(v.toPrecision(3)), shown = n >= 1000 ? Math.round(v) : n;
      if (shown < 1024 || u === 'TiB') return shown + ' ' + u;
      v /= 1024;
    }
    return '';
  }
  function percentile(x) {
    if (x <= 1) return 'p0';
    const left = 100 / x;
    const s = (100 - left).toFixed(Math.min(12, Math.max(0, Math.ceil(-Math.log10(left)) + 1)));
    return 'p' + (s.includes('.') ? s.replace(/\.?0+$/, '') : s);
  }
  function format(v, unit) {
    if (v === null || !Number.isFinite(v)) return '-';
    const sign = v < 0 ? '-' : '';
    v = Math.abs(v);
    switch (unit) {
      case 'us': return sign + duration(v * 1e3);
      case 's': return sign + duration(v * 1e9);
      case '/s': return sign + short(v) + '/s';
      case 'bytes': return sign + size(v);
      case 'bytes/s': return sign + size(v) + '/s';
      case '%': return sign + digits(v) + '%';
      case 'percentile': return sign + percentile(v);
      case '': case 'events': return sign + short(v);
    }
    return sign + short(v) + ' ' + unit;
  }

  // --- Scales and marks of axes ---

  const CLOCK = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
  function stepOf(unit, raw) {
    if (!(raw > 0)) return 0;
    if ((unit === 'bytes' || unit === 'bytes/s') && raw > 1) return 2 ** Math.ceil(Math.log2(raw));
    if (unit === 's' && raw > 0.5) return CLOCK.find((s) => s >= raw) || Math.ceil(raw / 86400) * 86400;
    const ten = 10 ** Math.floor(Math.log10(raw));
    return ([1, 2, 5].find((m) => m * ten >= raw * (1 - 1e-9)) || 10) * ten;
  }
  // External units may be long and appear only once, beside the axis.
  const OWN = ['s', 'us', '/s', 'events', 'bytes', 'bytes/s', '%', 'percentile'];
  function ticks(axis, log, lo, hi, n) {
    n = Math.max(n, 2);
    const unit = OWN.includes(axis.unit) ? axis.unit : '';
    const out = [];
    if (axis.labels) {
      const every = Math.max(1, Math.ceil(axis.labels.length / n));
      for (let i = 0; i < axis.labels.length; i += every) if (i >= lo && i <= hi) out.push([i, axis.labels[i]]);
      return out;
    }
    if (axis.unit === 'percentile') {
      if (lo <= 1) out.push([1, 'p0']);
      if (n > 4 && lo <= 2 && hi >= 2) out.push([2, 'p50']);
      const every = Math.max(1, Math.ceil(Math.log10(hi) / n));
      for (let k = 1; k <= Math.log10(hi) + 1e-9; k += every) if (10 ** k >= lo) out.push([10 ** k, percentile(10 ** k)]);
      return out;
    }
    if (log) {
      const first = Math.floor(Math.log10(lo)), decades = Math.log10(hi / lo);
      const every = Math.max(1, Math.ceil(decades / n));
      const named = decades < 1.2 ? [1, 2, 3, 5, 7] : decades * 3 <= n + 1 ? [1, 2, 5] : decades * 2 <= n + 1 ? [1, 3] : [1];
      for (let k = first; k <= Math.ceil(Math.log10(hi)); k++) {
        for (let m = 1; m < 10; m++) {
          const v = m * 10 ** k;
          if (v < lo * (1 - 1e-9) || v > hi * (1 + 1e-9)) continue;
          const text = named.includes(m) && (m > 1 || (k - first) % every === 0) ? format(v, unit) : '';
          if (text || every === 1) out.push([v, text]);
        }
      }
      return out;
    }
    const step = stepOf(axis.unit, (hi - lo) / n);
    if (!(step > 0)) return out;
    for (let k = Math.ceil(lo / step); k * step <= hi && out.length < 100; k++) {
      const v = Math.abs(k * step) < step * 1e-6 ? 0 : k * step;
      out.push([v, v === 0 ? '0' : format(v, unit)]);
    }
    return out;
  }
  function scale(log, lo, hi, a, b) {
    const f = log ? (v) => Math.log(v > lo ? v : lo) : (v) => v;
    const g = log ? Math.exp : (v) => v;
    const l = f(lo), r = f(hi) - l;
    return { lo, hi, to: (v) => a + (f(v) - l) / r * (b - a), from: (p) => g(l + (p - a) / (b - a) * r) };
  }

  // after is the first index whose x is at least v.
  function after(xs, v) {
    let lo = 0, hi = xs.length;
    while (lo < hi) {
      const m = (lo + hi) >> 1;
      if (xs[m] < v) lo = m + 1; else hi = m;
    }
    return lo;
  }
  function nearest(xs, v) {
    const i = after(xs, v);
    return i > 0 && (i === xs.length || v - xs[i - 1] <= xs[i] - v) ? i - 1 : i;
  }
  // sample is the symbol of a series of points, as in the legend.
  const sample = (s, transform) => svg('path', { class: s.filled ? 'f' + s.tone : 'line t' + s.tone, d: s.symbol, transform: transform || '' });
  const px = (v) => Math.round(v * 10) / 10;

  // --- Shared state of the pictures over time ---

  const views = [];
  const whole = [Infinity, -Infinity];
  for (const f of data.figures) {
    if (!f.shared) continue;
    if (f.x.max) { whole[0] = Math.min(whole[0], f.x.min || 0); whole[1] = Math.max(whole[1], f.x.max); }
    for (const s of f.series) {
      const xs = data.xs[s.x];
      if (xs.length) { whole[0] = Math.min(whole[0], xs[0]); whole[1] = Math.max(whole[1], xs[xs.length - 1]); }
    }
  }
  if (!(whole[1] > whole[0])) { whole[0] = 0; whole[1] = 1; }
  let range = whole.slice(), at = null;
  let asked = false;
  function redraw() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => { asked = false; for (const v of views) if (v.seen && v.stale) v.draw(); });
  }
  function zoom(lo, hi) {
    const least = (whole[1] - whole[0]) / 1e4;
    lo = Math.max(lo, whole[0]);
    hi = Math.min(hi, whole[1]);
    if (hi - lo < least) return;
    range = [lo, hi];
    for (const v of views) if (v.f.shared) v.stale = true;
    shown.textContent = lo === whole[0] && hi === whole[1] ? 'the whole run' : format(lo, 's') + ' to ' + format(hi, 's');
    redraw();
  }
  // zoomBy zooms by a factor, around the cross-hair or the middle.
  function zoomBy(k) {
    const c = at !== null && at >= range[0] && at <= range[1] ? at : (range[0] + range[1]) / 2;
    zoom(c - (c - range[0]) * k, c + (range[1] - c) * k);
  }
  function pan(k) {
    const w = range[1] - range[0], by = Math.min(Math.max(k * w, whole[0] - range[0]), whole[1] - range[1]);
    zoom(range[0] + by, range[1] + by);
  }
  function cross(x) {
    at = x;
    for (const v of views) if (v.f.shared && v.seen && !v.stale) v.cross(x);
  }

  // --- A picture ---

  class View {
    constructor(f, figure) {
      this.f = f;
      this.figure = figure;
      this.plot = figure.querySelector('.plot');
      this.svg = this.plot.querySelector('svg');
      this.hidden = new Set();
      this.log = f.y.log;
      this.seen = false;
      this.stale = true;
      this.at = null;
      this.row = 0;
      this.plot.classList.add('live');
      this.plot.tabIndex = 0;
      this.plot.setAttribute('role', 'group');
      this.plot.setAttribute('aria-roledescription', 'picture');
      this.plot.setAttribute('aria-label', f.title + '. Arrow keys read values' + (f.shared ? ', plus and minus zoom, 0 shows the whole run.' : '.'));
      this.plot.setAttribute('aria-describedby', 'p-' + f.name + '-d');
      this.tip = make('div', { class: 'tip', hidden: '' });
      this.plot.append(this.tip);
      if (!f.heat) this.legend();
      this.listen();
    }

    legend() {
      for (const li of this.figure.querySelectorAll('.legend li[data-s]')) {
        const b = make('button', { type: 'button', 'aria-pressed': 'true', title: 'Show or hide' });
        b.append(...li.childNodes);
        li.append(b);
        b.addEventListener('click', () => {
          const i = Number(li.dataset.s), hide = !this.hidden.has(i);
          if (hide) this.hidden.add(i); else this.hidden.delete(i);
          b.setAttribute('aria-pressed', String(!hide));
          this.stale = true;
          redraw();
        });
      }
      if (this.f.x.labels || this.f.y.unit === '%') return;
      const say = () => this.log ? 'log scale' : 'linear scale';
      const b = make('button', { type: 'button', title: 'Change the scale' }, say());
      b.addEventListener('click', () => {
        this.log = !this.log;
        b.textContent = say();
        this.stale = true;
        redraw();
      });
      const li = make('li', { class: 'how' });
      li.append(b);
      this.figure.querySelector('.legend').append(li);
    }

    // unpack decodes the rows, which are stored as differences. It runs when the
    // map is drawn, so that opening the page does not wait for it.
    unpack() {
      const h = this.f.heat;
      if (h.mids) return;
      h.columns = h.columns.map((c) => {
        const col = { from: c[0], to: c[1], rows: [], counts: [] };
        for (let i = 2, r = 0; i < c.length; i += 2) {
          r += c[i];
          col.rows.push(r);
          col.counts.push(c[i + 1]);
        }
        return col;
      });
      h.edge = (i) => h.low * (h.high / h.low) ** (i / h.rows);
      h.mids = h.columns.map((c) => (c.from + c.to) / 2);
    }

    // domains computes the ranges of both axes, from the values within the zoom.
    domains() {
      const f = this.f;
      let [xlo, xhi] = f.shared ? range : [Infinity, -Infinity];
      if (f.x.labels) { xlo = -0.5; xhi = f.x.labels.length - 0.5; }
      if (f.heat) return [xlo, xhi, f.heat.low, f.heat.high];
      if (!f.shared && !f.x.labels) {
        for (const s of f.series) {
          const xs = data.xs[s.x];
          if (xs.length) { xlo = Math.min(xlo, xs[0]); xhi = Math.max(xhi, xs[xs.length - 1]); }
        }
        if (!(xhi > xlo)) { xlo = f.x.log ? xlo / 1.5 : xlo - 1; xhi = f.x.log ? xhi * 1.5 : xhi + 1; }
        else if (!f.x.log) { if (!f.x.zero) xlo -= (xhi - xlo) * 0.05; xhi += (xhi - xlo) * 0.05; }
      }
      let lo = Infinity, hi = -Infinity;
      f.series.forEach((s, n) => {
        if (this.hidden.has(n)) return;
        const xs = data.xs[s.x], end = Math.min(after(xs, xhi) + 1, xs.length);
        for (let i = Math.max(after(xs, xlo) - 1, 0); i < end; i++) {
          const v = s.y[i];
          if (v === null || this.log && v <= 0) continue;
          lo = Math.min(lo, s.lo && s.lo[i] > 0 ? s.lo[i] : v);
          hi = Math.max(hi, s.hi ? s.hi[i] : v);
        }
      });
      if (!(hi >= lo)) { lo = this.log ? 0.1 : 0; hi = 1; }
      if (this.log) {
        if (hi / lo < 1.5) { lo /= 1.5; hi *= 1.5; }
        return [xlo, xhi, lo / 1.08, hi * 1.08];
      }
      if (f.y.zero) { lo = Math.min(lo, 0); hi = Math.max(hi, 0); }
      if (hi === lo) { const d = Math.abs(hi) * 0.1 || 1; hi += d; if (!f.y.zero) lo -= d; }
      const d = (hi - lo) * 0.06;
      return [xlo, xhi, lo < 0 || !f.y.zero ? lo - d : lo, hi + d];
    }

    draw() {
      this.stale = false;
      this.tip.hidden = true; // its position may be outside now
      if (this.f.heat) this.unpack();
      // Reading the width here would cause a new layout for each picture.
      const f = this.f, w = Math.max(this.width, 240), narrow = w < 480;
      const left = narrow ? 62 : 84, height = f.heat ? (narrow ? 240 : 300) : (narrow ? 190 : 240);
      const box = { x: left, y: 20, w: w - left - (narrow ? 6 : 16), h: height };
      const h = box.y + box.h + (f.x.label && !f.x.labels ? 46 : 28);
      const [xlo, xhi, ylo, yhi] = this.domains();
      this.box = box;
      this.x = scale(f.x.log, xlo, xhi, box.x, box.x + box.w);
      this.y = scale(this.log, ylo, yhi, box.y + box.h, box.y);
      const g = svg('g'), clip = 'c-' + f.name, below = box.y + box.h;
      const line = (cls, d) => g.append(svg('path', { class: cls, d }));
      const say = (cls, x, y, text) => g.append(svg('text', { class: cls, x: px(x), y: px(y) }, text));
      const cut = svg('clipPath', { id: clip });
      cut.append(svg('rect', { x: box.x, y: box.y - 1, width: box.w, height: box.h + 2 }));
      g.append(cut);
      this.inner = svg('g', { 'clip-path': 'url(#' + clip + ')' });

      for (const [from, to, text, kind] of f.marks) {
        const a = Math.max(this.x.to(from), box.x), b = Math.min(this.x.to(to), box.x + box.w);
        if (b < box.x || a > box.x + box.w) continue;
        if (from === to) line('mark', 'M' + px(a) + ' ' + box.y + 'v' + box.h);
        else {
          const wide = Math.max(px(b - a), kind === 2 ? 2 : 1);
          const area = (cls, y, high) => line(cls, 'M' + px(a) + ' ' + y + 'h' + wide + 'v' + high + 'h' + -wide + 'z');
          // The edges of a stall and a freeze are visible even if one is within the
          // other.
          area(['band', 'stall', 'freeze'][kind], box.y + (kind === 2 ? 4 : 0), box.h - (kind === 2 ? 4 : 0));
          if (kind === 1) area('bar f0', box.y, 4);
          if (kind === 2) area('bar f1', below - 4, 4);
        }
        if (text) a + text.length * 7 < box.x + box.w ? say('note start', a, box.y - 6, text) : say('note end', b, box.y - 6, text);
      }
      for (const [v, text] of ticks(f.y, this.log, ylo, yhi, Math.floor(box.h / 40))) {
        const y = px(this.y.to(v));
        if (!text) { line('axis', 'M' + (box.x - 3) + ' ' + y + 'h3'); continue; }
        line('grid', 'M' + box.x + ' ' + y + 'h' + box.w);
        say('label end', box.x - 7, y + 4, text);
      }
      let end = -Infinity;
      for (const [v, text] of ticks(f.x, f.x.log, xlo, xhi, Math.floor(box.w / 80))) {
        const x = this.x.to(v);
        line('axis', 'M' + px(x) + ' ' + below + 'v4');
        const half = text.length * 3.5;
        if (!text || x - half < end + 6 || x + half > w) continue;
        end = x + half;
        say('label middle', x, below + 17, text);
      }
      line('axis', 'M' + box.x + ' ' + box.y + 'V' + below + 'H' + (box.x + box.w));
      if (f.x.label && !f.x.labels) say('note middle', box.x + box.w / 2, below + 36, f.x.label);
      if (f.y.label && !narrow) g.append(svg('text', { class: 'note middle', transform: 'translate(14 ' + (box.y + box.h / 2) + ') rotate(-90)' }, f.y.label));
      g.append(this.inner);
      if (f.heat) this.heat(); else this.lines();
      this.over = svg('g');
      g.append(this.over);

      this.svg.setAttribute('viewBox', '0 0 ' + w + ' ' + h);
      this.svg.setAttribute('width', w);
      this.svg.setAttribute('height', h);
      // Keep the static picture's description for the focused element, but not its
      // title, which would appear as a tooltip.
      const words = this.svg.querySelector('desc');
      this.svg.removeAttribute('aria-labelledby');
      this.svg.setAttribute('aria-hidden', 'true');
      this.svg.replaceChildren(words, g);
      if (f.shared && at !== null) this.cross(at);
    }

    lines() {
      const f = this.f, bars = f.series.filter((s) => s.style === BARS).length;
      let nth = 0;
      f.series.forEach((s, n) => {
        if (s.style === BARS) {
          if (!this.hidden.has(n)) this.inner.append(svg('path', { class: 'bar f' + s.tone, d: this.bars(s, nth, bars) }));
          nth++;
          return;
        }
        if (this.hidden.has(n)) return;
        if (s.style === RANGES) { this.inner.append(svg('path', { class: 'line t' + s.tone, d: this.ranges(s) }), ...this.symbols(s)); return; }
        const points = this.points(s);
        this.inner.append(svg('path', { class: 'line t' + s.tone + ' d' + s.dash, d: points.d }));
        if (s.style === DOTS) this.inner.append(svg('path', { class: 'bar f' + s.tone, d: points.at.map(([x, y]) => 'M' + px(x - 3) + ' ' + px(y - 3) + 'h6v6h-6z').join('') }));
      });
    }

    bars(s, nth, of) {
      const w = Math.min(Math.abs(this.x.to(1) - this.x.to(0)) * 0.7 / of, 64), xs = data.xs[s.x], zero = this.y.to(0);
      let d = '';
      s.y.forEach((v, i) => {
        if (v === null) return;
        const x = this.x.to(xs[i]) - w * of / 2 + w * nth + 1, y = this.y.to(v), bw = Math.max(w - 2, 1);
        d += 'M' + px(x) + ' ' + px(y) + 'h' + px(bw) + 'V' + px(zero) + 'h' + px(-bw) + 'z';
      });
      return d;
    }

    // ranges are the intervals of points, and symbols the points themselves.
    ranges(s) {
      const xs = data.xs[s.x];
      return s.y.map((v, i) => {
        if (v === null) return '';
        const x = this.x.to(xs[i]), lo = px(this.y.to(s.lo[i])), hi = px(this.y.to(s.hi[i]));
        return 'M' + px(x) + ' ' + lo + 'V' + hi + 'M' + px(x - 3) + ' ' + lo + 'h6M' + px(x - 3) + ' ' + hi + 'h6';
      }).join('');
    }

    symbols(s) {
      const xs = data.xs[s.x];
      return s.y.map((v, i) => v === null ? '' : sample(s, 'translate(' + px(this.x.to(xs[i]) - 14) + ' ' + px(this.y.to(v) - 6) + ')')).filter((e) => e);
    }

    // points makes a path. Points in the same column of pixels are reduced to the
    // first, the extremes and the last.
    points(s) {
      const xs = data.xs[s.x], first = Math.max(after(xs, this.x.lo) - 1, 0), last = Math.min(after(xs, this.x.hi) + 1, xs.length);
      const many = last - first > 2 * this.box.w, all = [];
      let d = '', pen = false, alone = false, column = NaN, lo, hi, end, ly = 0;
      const to = (x, y) => { d += (pen ? 'L' : 'M') + px(x) + ' ' + px(y); alone = !pen; pen = true; };
      const flush = () => {
        if (column !== column) return;
        const [a, b] = lo[2] <= hi[2] ? [lo, hi] : [hi, lo];
        to(a[0], a[1]);
        if (b !== a) to(b[0], b[1]);
        if (end !== b) to(end[0], end[1]);
        column = NaN;
      };
      for (let i = first; i < last; i++) {
        const v = s.y[i];
        if (v === null || this.f.x.log && xs[i] <= 0) {
          flush();
          if (alone) d += 'h0';
          pen = alone = false;
          continue;
        }
        const x = this.x.to(xs[i]), y = this.y.to(v);
        all.push([x, y]);
        if (many) {
          const c = Math.floor(x), p = [x, y, i];
          if (c !== column) { flush(); to(x, y); column = c; lo = hi = end = p; continue; }
          if (y < lo[1]) lo = p;
          if (y > hi[1]) hi = p;
          end = p;
          continue;
        }
        if (s.style === STEPS && pen) to(x, ly);
        to(x, y);
        ly = y;
      }
      flush();
      if (alone) d += 'h0';
      return { d, at: all };
    }

    // heat draws the cells, and joins columns narrower than three pixels.
    heat() {
      const h = this.f.heat, most = Math.max(Math.floor(this.box.w / 3), 1), step = (this.x.hi - this.x.lo) / most;
      const cols = [];
      for (const c of h.columns) {
        if (c.to <= this.x.lo || c.from >= this.x.hi) continue;
        if (c.to - c.from >= step) { cols.push(c); continue; }
        const from = this.x.lo + Math.floor(((c.from + c.to) / 2 - this.x.lo) / step) * step;
        let last = cols[cols.length - 1];
        if (!last || last.from !== from) { last = { from, to: from + step, sum: new Map() }; cols.push(last); }
        if (last.sum) c.rows.forEach((r, i) => last.sum.set(r, (last.sum.get(r) || 0) + c.counts[i]));
      }
      let top = 1;
      for (const c of cols) {
        if (c.sum) { c.rows = [...c.sum.keys()]; c.counts = [...c.sum.values()]; }
        for (const n of c.counts) top = Math.max(top, n);
      }
      const paths = Array.from({ length: LEVELS }, () => ''), scaleTo = Math.log(top);
      const ys = Array.from({ length: h.rows + 1 }, (_, i) => Math.round(this.y.to(h.edge(i))));
      for (const c of cols) {
        const a = Math.round(this.x.to(c.from)), w = Math.max(Math.round(this.x.to(c.to)) - a, 1);
        c.rows.forEach((r, i) => {
          const l = top <= 1 ? LEVELS - 1 : Math.min(Math.floor(Math.log(c.counts[i]) / scaleTo * LEVELS), LEVELS - 1);
          const y = ys[r + 1], t = Math.max(ys[r] - y, 1);
          paths[l] += 'M' + a + ' ' + y + 'h' + w + 'v' + t + 'h' + -w + 'z';
        });
      }
      paths.forEach((d, l) => { if (d) this.inner.append(svg('path', { class: 'cells h' + l, d })); });
    }

    // --- Reading values ---

    // cross shows the cross-hair at x.
    cross(x) {
      this.at = x;
      if (!this.over) return;
      if (x === null || x < this.x.lo || x > this.x.hi) { this.over.replaceChildren(); return; }
      const p = px(this.x.to(x)), parts = [svg('path', { class: 'cross', d: 'M' + p + ' ' + this.box.y + 'v' + this.box.h })];
      for (const [s, i] of this.values(x)) {
        const xs = data.xs[s.x];
        if (s.style === BARS || s.style === STEPS || s.style === RANGES) continue;
        parts.push(svg('circle', { class: 'ring t' + s.tone, cx: px(this.x.to(xs[i])), cy: px(this.y.to(s.y[i])), r: 3.5 }));
      }
      this.over.replaceChildren(...parts);
    }

    // values are the points at x: the nearest ones and, for steps, the current one.
    values(x) {
      const out = [];
      this.f.series.forEach((s, n) => {
        if (this.hidden.has(n)) return;
        const xs = data.xs[s.x];
        if (!xs.length) return;
        let i;
        if (s.style === STEPS) {
          i = after(xs, x);
          if (xs[i] !== x) i--;
          if (i < 0 || x > xs[xs.length - 1]) return;
        } else {
          i = nearest(xs, x);
          // Further away than the usual distance between points: no point here.
          const gap = xs.length > 1 ? (xs[xs.length - 1] - xs[0]) / (xs.length - 1) : Infinity;
          if (Math.abs(xs[i] - x) > 1.5 * gap && xs.length > 2) return;
        }
        if (s.y[i] !== null) out.push([s, i]);
      });
      return out;
    }

    // describe is the text of the values at x, in rows.
    describe(x, y) {
      const f = this.f, h = f.heat;
      if (h) {
        const c = h.columns[nearest(h.mids, x)];
        if (!c) return null;
        const r = Math.min(Math.max(Math.floor(Math.log(Math.max(y, h.low) / h.low) / Math.log(h.high / h.low) * h.rows), 0), h.rows - 1);
        const k = c.rows.indexOf(r), n = k < 0 ? 0 : c.counts[k];
        return { head: format(c.from, 's') + ' to ' + format(c.to, 's'), rows: [
          [null, format(h.edge(r), 'us') + ' to ' + format(h.edge(r + 1), 'us'), String(n)],
          [null, 'in the whole column', String(c.counts.reduce((a, b) => a + b, 0))]] };
      }
      const found = this.values(x);
      if (!found.length) return null;
      let head = format(x, f.x.unit);
      if (f.x.labels) head = f.x.labels[Math.round(x)] || '';
      else if (f.shared) head = (f.middles ? 'around ' : 'at ') + format(data.xs[found[0][0].x][found[0][1]], 's');
      return { head, rows: found.map(([s, i]) => [s, s.name || f.title, (s.least && s.least.includes(i) ? '>= ' : '') + format(s.y[i], f.y.unit)]) };
    }

    show(x, y, touch) {
      const t = this.describe(x, y);
      if (!t) { this.tip.hidden = true; return t; }
      const rows = t.rows.map(([s, name, value]) => {
        const row = make('div'), i = svg('svg', { viewBox: '0 0 28 12', width: 28, height: 12 });
        if (s) i.append(s.style === RANGES ? sample(s) : s.style === BARS ? svg('path', { class: 'f' + s.tone, d: 'M8 1h12v10h-12z' }) : svg('path', { class: 'line t' + s.tone + ' d' + s.dash, d: 'M1 6h26' }));
        row.append(i, make('span', {}, name), make('b', {}, value));
        return row;
      });
      this.tip.replaceChildren(make('strong', {}, t.head), ...rows);
      this.tip.hidden = false;
      const p = this.x.to(x), w = this.tip.offsetWidth, room = this.plot.clientWidth;
      const left = p + 14 + w <= room ? p + 14 : Math.max(p - 14 - w, 0);
      this.tip.style.transform = 'translate(' + px(left) + 'px,' + (touch ? -8 : px(this.box.y + 8)) + 'px)';
      return t;
    }

    // read moves the cross-hair to x, in this picture or in all of them.
    read(x, y, touch) {
      if (this.f.shared) cross(x); else this.cross(x);
      this.at = x;
      return this.show(x, y === undefined ? this.f.heat ? this.f.heat.edge(this.row + 0.5) : 0 : y, touch);
    }

    leave() {
      this.tip.hidden = true;
      if (this.f.shared) cross(null); else this.cross(null);
    }

    // stops are the positions for arrow keys.
    stops() {
      if (this.f.heat) return this.f.heat.mids;
      let best = [];
      this.f.series.forEach((s, n) => {
        const xs = data.xs[s.x];
        if (!this.hidden.has(n) && xs.length > best.length) best = xs;
      });
      return best;
    }

    listen() {
      let from = null, box = null;
      const where = (e) => {
        const r = this.svg.getBoundingClientRect(), k = this.box ? this.svg.viewBox.baseVal.width / r.width : 1;
        return [(e.clientX - r.left) * k, (e.clientY - r.top) * k];
      };
      const inside = (p) => this.box && p >= this.box.x - 4 && p <= this.box.x + this.box.w + 4;
      const bound = (p) => Math.min(Math.max(p, this.box.x), this.box.x + this.box.w);
      this.plot.addEventListener('pointermove', (e) => {
        if (!this.box) return;
        const [p, q] = where(e);
        if (from !== null) {
          const a = Math.min(from, bound(p)), b = Math.max(from, bound(p));
          if (!box) { box = svg('rect', { class: 'chosen', y: this.box.y, height: this.box.h }); this.svg.append(box); }
          box.setAttribute('x', a);
          box.setAttribute('width', b - a);
          this.tip.hidden = true;
          return;
        }
        if (!inside(p)) { this.leave(); return; }
        this.read(this.x.from(bound(p)), this.y.from(Math.min(Math.max(q, this.box.y), this.box.y + this.box.h)), e.pointerType === 'touch');
      });
      this.plot.addEventListener('pointerdown', (e) => {
        if (e.pointerType === 'touch' || e.button !== 0 || !this.f.shared || !this.box) return;
        const [p] = where(e);
        if (!inside(p)) return;
        from = bound(p);
        this.plot.setPointerCapture(e.pointerId);
      });
      const done = (e) => {
        if (from === null) return;
        const a = Math.min(from, bound(where(e)[0])), b = Math.max(from, bound(where(e)[0]));
        from = null;
        if (box) { box.remove(); box = null; }
        if (e.type === 'pointerup' && b - a > 8) zoom(this.x.from(a), this.x.from(b));
      };
      this.plot.addEventListener('pointerup', done);
      this.plot.addEventListener('pointercancel', done);
      this.plot.addEventListener('pointerleave', () => { if (from === null) this.leave(); });
      this.plot.addEventListener('dblclick', () => { if (this.f.shared) zoom(whole[0], whole[1]); });
      this.plot.addEventListener('blur', () => this.leave());
      this.plot.addEventListener('keydown', (e) => this.key(e));
    }

    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey || !this.box) return;
      const stops = this.stops(), n = stops.length;
      if (!n) return;
      const first = Math.min(after(stops, this.x.lo), n - 1), last = Math.max(after(stops, this.x.hi * (1 + 1e-12)) - 1, first);
      let i = this.at === null ? null : nearest(stops, this.at);
      const by = e.shiftKey ? 10 : 1;
      switch (e.key) {
        case 'ArrowRight': i = i === null ? first : Math.min(i + by, last); break;
        case 'ArrowLeft': i = i === null ? last : Math.max(i - by, first); break;
        case 'Home': i = first; break;
        case 'End': i = last; break;
        case 'ArrowUp': case 'ArrowDown':
          if (!this.f.heat) return;
          this.row = Math.min(Math.max(this.row + (e.key === 'ArrowUp' ? by : -by), 0), this.f.heat.rows - 1);
          if (i === null) i = first;
          break;
        case '+': case '=': if (this.f.shared) zoomBy(0.5); e.preventDefault(); return;
        case '-': if (this.f.shared) zoomBy(2); e.preventDefault(); return;
        case '0': if (this.f.shared) zoom(whole[0], whole[1]); e.preventDefault(); return;
        case 'Escape': this.leave(); return;
        default: return;
      }
      e.preventDefault();
      const t = this.read(stops[i]);
      if (t) live.textContent = t.head + ': ' + t.rows.map(([, name, value]) => name + ' ' + value).join(', ');
    }
  }

  // --- The page ---

  const tools = document.getElementById('tools');
  const live = make('div', { class: 'screen-reader', 'aria-live': 'polite', id: 'said' });
  const shown = make('output', { id: 'shown' }, 'the whole run');
  const press = (text, what, f) => {
    const b = make('button', { type: 'button', title: what, 'aria-label': what }, text);
    b.addEventListener('click', f);
    return b;
  };
  // The theme is the reader's until the button is pressed. The choice is then
  // stored if the browser allows it for files.
  const themes = ['auto', 'light', 'dark'];
  let theme = 'auto';
  try { theme = localStorage.getItem('carronade-theme') || 'auto'; } catch { /* not allowed here */ }
  if (!themes.includes(theme)) theme = 'auto';
  const button = press('', 'Change the colors', () => paint(themes[(themes.indexOf(theme) + 1) % 3], true));
  function paint(to, keep) {
    theme = to;
    if (to === 'auto') delete root.dataset.theme; else root.dataset.theme = to;
    button.textContent = 'Theme: ' + to;
    button.setAttribute('aria-label', 'Theme: ' + to + '. Press to change the colors');
    if (keep) try { localStorage.setItem('carronade-theme', to); } catch { /* not allowed here */ }
  }
  paint(theme, false);
  const timed = data.figures.some((f) => f.shared);
  if (timed) {
    tools.append(
      press('+', 'Zoom in', () => zoomBy(0.5)), press('−', 'Zoom out', () => zoomBy(2)),
      press('←', 'Earlier', () => pan(-0.5)), press('→', 'Later', () => pan(0.5)),
      press('Whole run', 'Show the whole run', () => zoom(whole[0], whole[1])));
  }
  tools.append(button);
  if (timed) tools.append(shown);
  tools.hidden = false;
  document.body.append(live);

  const sight = new IntersectionObserver((entries) => {
    for (const e of entries) {
      const v = views.find((v) => v.plot === e.target);
      v.seen = e.isIntersecting;
    }
    redraw();
  }, { rootMargin: '400px' });
  // The other pictures are drawn when the browser is idle, for printing and for
  // searching in the page.
  const idle = (f) => globalThis.requestIdleCallback ? requestIdleCallback(f, { timeout: 100 }) : setTimeout(f, 50);
  let waiting = false;
  function whenIdle() {
    if (waiting) return;
    waiting = true;
    delete root.dataset.drawn;
    const next = () => {
      const v = views.find((v) => v.stale);
      if (v) {
        v.draw();
        idle(next);
        return;
      }
      waiting = false;
      root.dataset.drawn = 'all';
    };
    idle(next);
  }
  const widths = new ResizeObserver((entries) => {
    for (const e of entries) {
      const v = views.find((v) => v.plot === e.target), w = Math.round(e.contentRect.width);
      if (v.width !== w) { v.width = w; v.stale = true; }
    }
    redraw();
    whenIdle();
  });
  for (const f of data.figures) {
    const figure = document.getElementById('f-' + f.name);
    if (!figure) continue;
    const v = new View(f, figure);
    views.push(v);
    sight.observe(v.plot);
    widths.observe(v.plot);
  }
  // Visible pictures are drawn now, not a frame later. All are measured first.
  for (const v of views) {
    const r = v.plot.getBoundingClientRect();
    v.width = Math.round(v.plot.clientWidth);
    v.seen = r.top < innerHeight + 400 && r.bottom > -400;
  }
  for (const v of views) if (v.seen) v.draw();
  root.dataset.ready = String(performance.now());
  whenIdle();
  // For tests, which compare both implementations.
  globalThis.carronade = Object.freeze({ format });
})();
