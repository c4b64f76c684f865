// Charts of figures, drawn by uPlot. A figure has
//   name, title, x and y: axes with a unit, a label, and whether they are logarithmic (log), begin at
//     zero (zero) or end at round numbers (round);
//   series: name, tone, dash, style, xs, y (null is a gap), least (indices of lower bounds), and for
//     ranges lo, hi and symbol; filled: the area below steps too;
//   marks: [from, to, text, kind] along x; limits: {value, text} of y, or of x (x: true); between: two of y;
//   heat instead of series; shared if its x is the time that all charts of a group show.
const charts = (() => {
  'use strict';
  const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3], [12, 4]];
  const STEPS = 1, DOTS = 3, RANGES = 5; // styles; any other is a line
  const BANDS = [['band'], ['stall', 't0'], ['freeze', 't1'], ['fault', 't4']]; // by the kind of a mark: its color, and that of its edge
  const LEVELS = 10;
  const FONT = '12px system-ui, sans-serif';
  const POWERS = Array.from({ length: 60 }, (_, i) => 2 ** i);
  const CLOCK = [
    ...[1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1].flatMap((v) => [v, 2 * v, 5 * v]), 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800,
    ...[1, 2, 3, 6, 12, 24, 48, 120, 240, 720, 2400, 24000, 240000].map((h) => h * 3600),
  ];

  function make(tag, attributes, text) {
    const e = document.createElement(tag);
    for (const k in attributes) e.setAttribute(k, attributes[k]);
    if (text !== undefined) e.textContent = text;
    return e;
  }

  // widthOf is the width of a text of an axis.
  const ruler = document.createElement('canvas').getContext('2d');
  function widthOf(text) {
    ruler.font = FONT;
    return ruler.measureText(text ?? '').width;
  }

  // color is a color of the theme.
  const colors = new Map();
  function color(name) {
    if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
    return colors.get(name);
  }

  // sample draws the line of a series for the legend.
  function sample(s) {
    const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg'), path = document.createElementNS(svg.namespaceURI, 'path');
    for (const [k, v] of Object.entries({ viewBox: '0 0 28 12', width: 28, height: 12, 'aria-hidden': 'true', class: 'sample' })) svg.setAttribute(k, v);
    const filled = s.style === DOTS || s.symbol && s.filled;
    path.setAttribute('class', filled ? 'f' + s.tone : `line t${s.tone} d${s.style === RANGES ? 0 : s.dash}`);
    path.setAttribute('d', s.style === DOTS ? 'M10 6a4 4 0 1 0 8 0a4 4 0 1 0-8 0z' : s.symbol ?? 'M1 6h26');
    svg.append(path);
    return svg;
  }

  // numbered are the moments of a figure with a text, in order. The plot has only their numbers.
  function numbered(f) {
    return f.shared ? (f.marks ?? []).filter(([from, to, text]) => text && from === to).sort((a, b) => a[0] - b[0]) : [];
  }

  // join places labels of a width at positions from lo to hi. Those that would overlap become one: 3-5.
  function join(all, lo, hi, width, gap) {
    const out = [];
    for (const one of all) {
      let { first, last, at: from } = one;
      const to = one.at;
      for (;;) {
        const text = first === last ? String(first) : first + '-' + last, w = width(text);
        const x = Math.max(Math.min((from + to - w) / 2, hi - w), lo), before = out.at(-1);
        if (!before || before.x + before.w + gap <= x) { out.push({ first, last, at: from, text, x, w }); break; }
        ({ first, at: from } = out.pop());
      }
    }
    return out;
  }

  // axisMax rounds up, so that an axis does not jump with each value.
  function axisMax(v, unit) {
    if (!(v > 0)) return 1;
    const [p, steps] = unit?.startsWith('bytes') ? [2 ** Math.floor(Math.log2(v)), [1, 1.25, 1.5, 1.75, 2]] : [10 ** Math.floor(Math.log10(v)), [1, 1.5, 2, 3, 5, 7.5, 10, 15]];
    return p * (steps.find((m) => m * p >= v * 1.02) ?? 2.25);
  }

  // logMarks are the marks of a logarithmic axis: all of them, and those with text.
  function logMarks(unit, lo, hi, n) {
    if (unit === 'percentile') {
      const every = Math.max(1, Math.ceil(Math.log10(hi) / n)), all = lo <= 1 ? [1] : [];
      if (n > 4 && lo <= 2 && hi >= 2) all.push(2);
      for (let k = 1; k <= Math.log10(hi) + 1e-9; k += every) if (10 ** k >= lo) all.push(10 ** k);
      return [all, new Set(all)];
    }
    const first = Math.floor(Math.log10(lo)), decades = Math.log10(hi / lo), every = Math.max(1, Math.ceil(decades / n));
    const named = decades < 1.2 ? [1, 2, 3, 5, 7] : decades * 3 <= n + 1 ? [1, 2, 5] : decades * 2 <= n + 1 ? [1, 3] : [1];
    const all = [], texts = new Set();
    for (let k = first; k <= Math.ceil(Math.log10(hi)); k++) {
      for (let m = 1; m < 10; m++) {
        const v = m * 10 ** k, text = named.includes(m) && (m > 1 || (k - first) % every === 0);
        if (v < lo * (1 - 1e-9) || v > hi * (1 + 1e-9) || !text && every > 1) continue;
        all.push(v);
        if (text) texts.add(v);
      }
    }
    return [all, texts];
  }

  // axisOf are uPlot's options of an axis whose marks are this number of pixels apart.
  function axisOf(axis, log, apart, more) {
    const unit = format.axis(axis.unit), text = (v) => (v === 0 ? '0' : format(v, unit));
    const line = (name) => ({ stroke: () => color(name), width: 1 });
    const out = { stroke: () => color('muted'), font: FONT, labelFont: FONT, labelSize: 18, labelGap: 0, gap: 4, grid: line('grid'), ticks: { ...line('axis'), size: 4 }, border: { show: true, ...line('axis') }, space: apart, ...more };
    if (!log) {
      const incrs = axis.unit === 's' ? CLOCK : axis.unit?.startsWith('bytes') ? POWERS : undefined;
      return { ...out, ...(incrs && { incrs }), values: (u, all) => all.map((v) => (v === null ? '' : text(v))) };
    }
    let named;
    return {
      ...out, filter: (u, all) => all, grid: { ...out.grid, filter: (u, all) => all.map((v) => (named.has(v) ? v : null)) },
      splits: (u, i, lo, hi) => {
        const [all, texts] = logMarks(axis.unit, lo, hi, Math.max(2, Math.floor(((i === 0 ? u.width : u.height) - 80) / apart)));
        named = texts;
        // Texts that would overlap are left out: of a lesser mark first.
        const long = ((i === 0 ? u.bbox.width : u.bbox.height) || (i === 0 ? u.width - 90 : u.height - 60) * devicePixelRatio) / devicePixelRatio;
        const size = (v) => (i === 0 ? text(v).length * 7 + 6 : 15), at = (v) => Math.log(v / lo) / Math.log(hi / lo) * long, kept = [];
        const round = (v) => (Math.abs(Math.log10(v) - Math.round(Math.log10(v))) < 1e-9 ? 0 : 1);
        for (const v of [...texts].sort((a, b) => round(a) - round(b) || a - b)) {
          if (kept.some((k) => Math.abs(at(k) - at(v)) < (size(k) + size(v)) / 2)) texts.delete(v); else kept.push(v);
        }
        return all;
      },
      values: (u, all) => all.map((v) => (named.has(v) ? text(v) : '')),
    };
  }

  // alone are the points between two gaps, which no line would show.
  function alone(u, i) {
    const out = [];
    let before = null, last = -1, lone = false;
    u.data[i].forEach((v, k) => {
      if (v === undefined) return; // of another series
      if (v === null && lone) out.push(last);
      lone = v !== null && before === null;
      before = v;
      last = k;
    });
    if (lone) out.push(last);
    return out;
  }

  function nearest(xs, v) {
    let lo = 0, hi = xs.length;
    while (lo < hi) {
      const m = (lo + hi) >> 1;
      if (xs[m] < v) lo = m + 1; else hi = m;
    }
    return lo > 0 && (lo === xs.length || v - xs[lo - 1] <= xs[lo] - v) ? lo - 1 : lo;
  }

  // A Group is the charts of a page. The shared ones show the same time and the same position. on has
  // said, an element for screen readers; at(text), which gets the position; and zoomed(from, to), if
  // the reader can zoom. With newest, a chart shows its newest values while no position is read.
  class Group {
    constructor(on) {
      this.on = on;
      this.list = [];
      this.hidden = new Set(); // names of series
      this.whole = this.range = [0, 1];
      this.widths = new ResizeObserver((entries) => { for (const e of entries) e.target.chart?.resize(); });
      for (const q of ['(prefers-color-scheme: dark)', 'print']) matchMedia(q).addEventListener('change', () => this.repaint());
    }

    // repaint takes the colors of another theme.
    repaint() {
      colors.clear();
      for (const c of this.list) c.plot.redraw(false);
    }

    clear() {
      for (const c of this.list) { this.widths.unobserve(c.box); c.plot.destroy(); }
      this.list = [];
    }

    show(lo, hi) {
      this.range = [lo, hi];
      for (const c of this.list) if (c.f.shared) c.show();
    }

    zoom(lo, hi) {
      const [from, to] = this.whole;
      lo = Math.max(lo, from);
      hi = Math.min(hi, to);
      if (hi - lo < (to - from) / 1e4) return;
      this.show(lo, hi);
      this.on.zoomed(lo, hi);
    }

    // zoomBy zooms by a factor, around the position or the middle.
    zoomBy(k) {
      const [lo, hi] = this.range, c = this.at >= lo && this.at <= hi ? this.at : (lo + hi) / 2;
      this.zoom(c - (c - lo) * k, c + (hi - c) * k);
    }

    pan(k) {
      const [lo, hi] = this.range, by = Math.min(Math.max(k * (hi - lo), this.whole[0] - lo), this.whole[1] - hi);
      this.zoom(lo + by, hi + by);
    }

    all() { this.zoom(...this.whole); }

    // read moves the position of all shared charts but one to x; null: nowhere.
    read(x, by) {
      this.at = x ?? undefined;
      this.reading = true;
      for (const c of this.list) if (c !== by && c.f.shared) c.point(x);
      this.reading = false;
    }
  }

  // A Chart draws a figure into an element, with the names of its series in a list.
  class Chart {
    constructor(f, box, legend, group) {
      Object.assign(this, { f, box, group, log: f.y.log, row: 0, at: null });
      box.chart = this;
      box.tabIndex = 0;
      box.setAttribute('role', 'group');
      box.setAttribute('aria-roledescription', 'chart');
      box.setAttribute('aria-label', f.title + '. Arrow keys read values' + (this.zooms() ? ', plus and minus zoom, 0 shows the whole run.' : ', Home and End go to the ends.'));
      this.items(legend);
      this.scale(box.closest('figure').querySelector('figcaption'));
      group.list.push(this);
      this.build();
      group.widths.observe(box);
      box.addEventListener('keydown', (e) => this.key(e));
      box.addEventListener('blur', () => this.leave());
      box.addEventListener('pointermove', (e) => {
        if (e.pointerType !== 'touch') return;
        const r = this.plot.over.getBoundingClientRect();
        this.plot.setCursor({ left: Math.min(Math.max(e.clientX - r.left, 0), r.width), top: Math.min(Math.max(e.clientY - r.top, 0), r.height) });
      });
    }

    zooms() { return Boolean(this.f.shared && this.group.on.zoomed); }

    items(legend) {
      const { f } = this;
      if (f.heat) {
        this.cell = make('output', { class: 'cell' });
        legend.append(this.cell);
        return;
      }
      legend.replaceChildren();
      this.values = f.series.map((s, i) => {
        const key = f.name + ' ' + s.name, button = make('button', { type: 'button', 'aria-pressed': String(!this.group.hidden.has(key)) }), value = make('b');
        const says = () => { button.title = (this.group.hidden.has(key) ? 'Show ' : 'Hide ') + (s.name || f.title); };
        says();
        button.append(sample(s), make('span', {}, s.name || f.title), value);
        button.addEventListener('click', () => {
          const on = this.group.hidden.delete(key) || !this.group.hidden.add(key);
          button.setAttribute('aria-pressed', String(on));
          says();
          this.plot.setSeries(i + 1, { show: on });
        });
        const item = make('li', { 'data-s': i });
        item.append(button);
        legend.append(item);
        return value;
      });
    }

    // scale is the button that changes the scale.
    scale(heading) {
      heading.querySelector('.how')?.remove();
      if (this.f.heat) return;
      const say = () => (this.log ? 'Use a linear scale' : 'Use a log scale'), button = make('button', { type: 'button', class: 'how' }, say());
      button.append(make('span', { class: 'screen-reader' }, ' for ' + this.f.title));
      button.addEventListener('click', () => {
        this.log = !this.log;
        button.firstChild.data = say();
        this.build();
      });
      heading.insertBefore(button, heading.children[1] ?? null);
    }

    build() {
      this.plot?.destroy();
      this.narrow = this.box.clientWidth < 480;
      this.data = this.columns();
      this.plot = new uPlot(this.options(), this.data, this.box);
      this.show();
    }

    // set draws other values of the same series.
    set(f) {
      this.f = f;
      this.data = this.columns();
      this.plot.setData(this.data, false);
      this.show();
      this.say();
    }

    // columns are the values of all series at all x: undefined where a series has none.
    columns() {
      const { series, heat } = this.f;
      if (heat) return [heat.mids, heat.mids.map(() => null)];
      if (series.every((s) => s.xs === series[0].xs)) return [series[0].xs, ...series.map((s) => s.y)];
      return uPlot.join(series.map((s) => [s.xs, s.y]));
    }

    hidden(i) { return this.group.hidden.has(this.f.name + ' ' + this.f.series[i].name); }

    options() {
      const { f, narrow } = this;
      const stepped = uPlot.paths.stepped({ align: 1 });
      return {
        width: Math.max(this.box.clientWidth, 200), height: this.height(), padding: [f.marks?.some((m) => m[2] && (!f.shared || m[0] === m[1])) ? 22 : 8, this.right(), 0, 0],
        legend: { show: false },
        cursor: {
          drag: { x: this.zooms(), y: false, setScale: false, dist: 8 }, y: Boolean(f.heat), points: { size: 7 },
          dataIdx: (u, i, idx, x) => this.index(u, i, idx, x), bind: { dblclick: () => () => { if (this.zooms()) this.group.all(); } },
        },
        scales: {
          x: { time: false, distr: f.x.log ? 3 : 1, range: (u, lo, hi) => (hi > lo ? [lo, hi] : [1, 2]) },
          y: { distr: this.log ? 3 : 1, clamp: (u, v, lo) => lo, range: (u, lo, hi) => this.span(lo ?? Infinity, hi ?? -Infinity) },
        },
        axes: [
          axisOf(f.x, f.x.log, 80, { size: 24, label: f.shared ? undefined : f.x.label, grid: { show: false } }),
          axisOf(f.y, this.log, 34, { size: (u, texts) => Math.ceil(Math.max(34, ...(texts ?? []).map((t) => widthOf(t) + 12))) }),
        ],
        series: [{}, ...(f.heat ? [{ paths: () => null, points: { show: false } }] : f.series.map((s, i) => {
          const stroke = () => color('t' + s.tone), dots = s.style === DOTS;
          return {
            label: s.name, show: !this.hidden(i), stroke, width: 1.6, dash: DASHES[s.dash], spanGaps: false,
            fill: s.filled && s.style === STEPS ? () => color('t' + s.tone) + '33' : undefined, fillTo: () => (this.log ? this.plot.scales.y.min : 0),
            paths: dots || s.style === RANGES ? () => null : s.style === STEPS ? stepped : undefined,
            points: { show: s.style !== RANGES, size: dots ? 7 : 4, fill: stroke, filter: dots ? undefined : alone },
          };
        }))],
        hooks: {
          drawClear: [(u) => this.shade(u)],
          draw: [(u) => { if (f.heat) this.heat(u); else this.ranges(u); this.limits(u); }],
          setCursor: [() => this.moved()],
          setSelect: [(u) => this.selected(u)],
        },
      };
    }

    // right is the room for half of the last text of the x axis.
    right() { return this.f.x.unit === 'percentile' ? 34 : 28; }

    height() { return this.narrow ? 220 : this.f.wide ? 320 : 260; }

    resize() {
      const width = Math.max(this.box.clientWidth, 200);
      if (width === this.plot.width) return;
      if ((width < 480) !== this.narrow) this.build();
      else this.plot.setSize({ width, height: this.height() });
    }

    // show sets the range of x.
    show() {
      const { f } = this;
      let [min, max] = f.shared ? this.group.range : [Infinity, -Infinity];
      if (!f.shared) {
        for (const s of f.series) {
          min = Math.min(min, s.xs[0] ?? Infinity);
          max = Math.max(max, s.xs.at(-1) ?? -Infinity);
        }
        for (const l of f.limits ?? []) if (l.x) { min = Math.min(min, l.value); max = Math.max(max, l.value * 1.05); }
        if (f.x.zero) min = Math.min(min, 0);
        if (!(max > min)) [min, max] = f.x.log ? [min / 1.5, max * 1.5] : [min - 1, max + 1];
        else if (!f.x.log) {
          const by = (max - min) * 0.05;
          max += by;
          if (!f.x.zero) min -= by;
        }
      }
      this.plot.setScale('x', { min, max });
    }

    // span is the range of y for values from lo to hi.
    span(lo, hi) {
      const { f, log } = this, { zero, round, unit } = f.y;
      if (f.heat) return [f.heat.low, f.heat.high];
      const also = [...(f.limits ?? []).filter((l) => !l.x).map((l) => l.value), ...f.series.flatMap((s, i) => (s.style === RANGES && !this.hidden(i) ? [...s.lo, ...s.hi] : []))];
      for (const v of also) if (v !== null && (!log || v > 0)) { lo = Math.min(lo, v); hi = Math.max(hi, v); }
      if (!(hi >= lo)) [lo, hi] = [log ? 0.1 : 0, 1];
      if (round && !log) return [0, axisMax(hi, unit)];
      if (round) {
        const first = Math.floor(Math.log10(lo) + 1e-9);
        return [10 ** first, 10 ** Math.max(Math.ceil(Math.log10(hi) - 1e-9), first + 1)];
      }
      if (log) {
        if (hi / lo < 1.5) { lo /= 1.5; hi *= 1.5; }
        return [lo / 1.08, hi * 1.08];
      }
      if (zero) { lo = Math.min(lo, 0); hi = Math.max(hi, 0); }
      if (hi === lo) { const d = Math.abs(hi) * 0.1 || 1; hi += d; if (!zero) lo -= d; }
      const d = (hi - lo) * 0.06;
      return [lo < 0 || !zero ? lo - d : lo, hi + d];
    }

    // --- Drawing ---

    // paint draws within the plot, or outside of it too.
    paint(u, draw, outside) {
      const { ctx, bbox: b } = u;
      ctx.save();
      if (!outside) { ctx.beginPath(); ctx.rect(b.left, b.top, b.width, b.height); ctx.clip(); }
      ctx.font = FONT.replace('12', 11 * devicePixelRatio);
      ctx.textAlign = 'left';
      ctx.textBaseline = 'alphabetic';
      draw(ctx, b, devicePixelRatio);
      ctx.restore();
    }

    // shade draws the marks and the stretch between two values. A stall has its edge at the top and a
    // freeze at the bottom, so that both are visible if one is within the other.
    shade(u) {
      const { f } = this, texts = [], faults = [];
      this.paint(u, (ctx, b, px) => {
        const fill = (name, x, y, w, h) => { ctx.fillStyle = color(name); ctx.fillRect(x, y, w, h); };
        if (f.between) {
          const [lo, hi] = f.between.map((v) => u.valToPos(v, 'y', true));
          fill('band', b.left, hi, b.width, lo - hi);
        }
        ctx.strokeStyle = color('muted');
        ctx.lineWidth = px;
        ctx.setLineDash([px, 3 * px]);
        for (const [from, to, text, kind] of f.marks ?? []) {
          if (to < u.scales.x.min || from > u.scales.x.max) continue;
          const a = Math.round(Math.max(u.valToPos(from, 'x', true), b.left)), w = Math.round(Math.min(u.valToPos(to, 'x', true), b.left + b.width)) - a;
          if (from === to) {
            ctx.beginPath();
            ctx.moveTo(a + px / 2, b.top);
            ctx.lineTo(a + px / 2, b.top + b.height);
            ctx.stroke();
          } else {
            const [name, edge] = BANDS[kind], wide = Math.max(w, kind === 2 ? 2 * px : px), below = kind === 2 ? 4 * px : 0;
            fill(name, a, b.top + below, wide, b.height - below);
            if (edge && kind < 3) fill(edge, a, kind === 1 ? b.top : b.top + b.height - 4 * px, wide, 4 * px);
            if (kind === 3) faults.push([a, wide]);
          }
          if (text && !f.shared) texts.push([a, text]);
        }
        for (const [a, wide] of faults) fill(BANDS[3][1], a, b.top + 4 * px, wide, 4 * px); // a stall covers its fault
      });
      this.paint(u, (ctx, b, px) => {
        this.placed = []; // what the plot says, for a test of overlaps
        this.texts(ctx, b, px, texts);
        this.numbers(u, ctx, b, px);
      }, true);
    }

    // numbers writes the numbers of moments above the plot.
    numbers(u, ctx, b, px) {
      const all = numbered(this.f).map(([at], i) => ({ at: u.valToPos(at, 'x', true), first: i + 1, last: i + 1 })).filter(({ at }) => at >= b.left - 1 && at <= b.left + b.width + 1);
      for (const { x, w, text } of join(all, b.left - 8 * px, b.left + b.width + 8 * px, (t) => ctx.measureText(t).width + 6 * px, 3 * px)) {
        const top = b.top - 17 * px;
        ctx.fillStyle = color('muted');
        ctx.fillRect(x, top, w, 14 * px);
        ctx.fillStyle = color('background');
        ctx.fillText(text, x + 3 * px, top + 11 * px);
        this.placed.push({ text, left: x / px, right: (x + w) / px, top: top / px, bottom: top / px + 14 });
      }
    }

    // texts writes the texts of marks above the plot. Without room it leaves a text out: the title and
    // the description have it.
    texts(ctx, b, px, texts) {
      let end = -Infinity;
      ctx.fillStyle = color('muted');
      for (const [a, text] of texts.sort((x, y) => x[0] - y[0])) {
        const w = ctx.measureText(text).width, x = Math.max(Math.min(a, b.left + b.width - w), 0);
        if (end > x) continue;
        end = x + w + 8 * px;
        ctx.fillText(text, x, b.top - 6 * px);
        this.placed.push({ text, left: x / px, right: (x + w) / px, top: b.top / px - 17, bottom: b.top / px - 3 });
      }
    }

    // limits draws the lines of limits. Texts of lines that are close stand side by side.
    limits(u) {
      this.paint(u, (ctx, b, px) => {
        const placed = [], bottom = b.top + b.height, right = b.left + b.width;
        const meets = (r) => placed.some((p) => r.x < p.x + p.w + 6 * px && p.x < r.x + r.w + 6 * px && Math.abs(r.y - p.y) < 13 * px);
        ctx.strokeStyle = color('ink');
        for (const l of this.f.limits ?? []) {
          const v = Math.round(u.valToPos(l.value, l.x ? 'x' : 'y', true)), w = ctx.measureText(l.text).width;
          if (l.x ? v < b.left || v > right : v < b.top || v > bottom) continue;
          ctx.lineWidth = 2 * px;
          ctx.setLineDash([10 * px, 3 * px, 2 * px, 3 * px]);
          ctx.beginPath();
          if (l.x) { ctx.moveTo(v, b.top); ctx.lineTo(v, bottom); } else { ctx.moveTo(b.left, v); ctx.lineTo(right, v); }
          ctx.stroke();
          const at = l.x ? { x: v + 5 * px, y: b.top + 12 * px, w } : { x: right - w - 4 * px, y: v - 15 * px < b.top ? v + 13 * px : v - 5 * px, w };
          if (l.x && at.x + w > right) at.x = v - 5 * px - w;
          while (meets(at) && at.x > 0 && at.y < bottom) if (l.x) at.y += 14 * px; else at.x -= 8 * px;
          placed.push(at);
          this.placed.push({ axis: 3, text: l.text, left: at.x / px, right: (at.x + w) / px, top: (at.y - 9 * px) / px, bottom: at.y / px });
          ctx.globalAlpha = 0.8;
          ctx.fillStyle = color('background');
          ctx.fillRect(at.x - 2 * px, at.y - 10 * px, w + 4 * px, 13 * px);
          ctx.globalAlpha = 1;
          ctx.fillStyle = color('ink');
          ctx.fillText(l.text, at.x, at.y);
        }
      });
    }

    // ranges draws points as symbols on their intervals.
    ranges(u) {
      this.paint(u, (ctx, b, px) => this.f.series.forEach((s, n) => {
        if (s.style !== RANGES || this.hidden(n)) return;
        const symbol = new Path2D(s.symbol);
        ctx.strokeStyle = ctx.fillStyle = color('t' + s.tone);
        s.y.forEach((v, i) => {
          if (v === null) return;
          const [lo, y, hi] = [s.lo[i], v, s.hi[i]].map((p) => u.valToPos(p, 'y', true));
          ctx.save();
          ctx.translate(u.valToPos(s.xs[i], 'x', true), 0);
          ctx.lineWidth = 1.6 * px;
          ctx.beginPath();
          for (const [x0, y0, x1, y1] of [[0, lo, 0, hi], [-3 * px, lo, 3 * px, lo], [-3 * px, hi, 3 * px, hi]]) { ctx.moveTo(x0, y0); ctx.lineTo(x1, y1); }
          ctx.stroke();
          ctx.translate(-14 * px, y - 6 * px);
          ctx.scale(px, px);
          ctx.lineWidth = 1.6;
          if (s.filled) ctx.fill(symbol); else ctx.stroke(symbol);
          ctx.restore();
        });
      }));
    }

    // heat draws the cells of a map, and joins columns narrower than three pixels.
    heat(u) {
      const h = this.f.heat, { min, max } = u.scales.x, edge = (i) => Math.round(u.valToPos(edgeOf(h, i), 'y', true));
      this.paint(u, (ctx, b, px) => {
        const step = (max - min) / Math.max(Math.floor(b.width / px / 3), 1), columns = [];
        for (const c of h.columns) {
          if (c.to <= min || c.from >= max) continue;
          if (c.to - c.from >= step) { columns.push(c); continue; }
          const from = min + Math.floor(((c.from + c.to) / 2 - min) / step) * step;
          let last = columns.at(-1);
          if (!last?.sum || last.from !== from) { last = { from, to: from + step, sum: new Map() }; columns.push(last); }
          c.rows.forEach((r, i) => last.sum.set(r, (last.sum.get(r) ?? 0) + c.counts[i]));
        }
        let top = 1;
        for (const c of columns) {
          if (c.sum) { c.rows = [...c.sum.keys()]; c.counts = [...c.sum.values()]; }
          for (const n of c.counts) top = Math.max(top, n);
        }
        const ys = Array.from({ length: h.rows + 1 }, (_, i) => edge(i));
        for (const c of columns) {
          const a = Math.round(u.valToPos(c.from, 'x', true)), w = Math.max(Math.round(u.valToPos(c.to, 'x', true)) - a, 1);
          c.rows.forEach((r, i) => {
            const level = top <= 1 ? LEVELS - 1 : Math.min(Math.floor(Math.log(c.counts[i]) / Math.log(top) * LEVELS), LEVELS - 1);
            ctx.fillStyle = color('h' + level);
            ctx.fillRect(a, ys[r + 1], w, Math.max(ys[r] - ys[r + 1], 1));
          });
        }
      });
    }

    // --- Reading values ---

    // index is the point of a series at x: the nearest one and, for steps, the current one.
    index(u, i, idx, x) {
      if (i === 0 || this.f.heat) return idx;
      const s = this.f.series[i - 1], xs = u.data[0], y = u.data[i], end = s.xs.at(-1);
      let a = idx, b = idx;
      if (s.style === STEPS) {
        const to = x + Math.abs(x) * 1e-9;
        while (a >= 0 && (y[a] === undefined || xs[a] > to)) a--;
        return a < 0 || x > end + Math.abs(end) * 1e-9 ? null : a;
      }
      while (a >= 0 && y[a] === undefined) a--;
      while (b < xs.length && y[b] === undefined) b++;
      if (a < 0 || b < xs.length && xs[b] - x < x - xs[a]) a = b;
      // Further away than the usual distance between points: no point here.
      if (a >= xs.length || s.xs.length > 2 && Math.abs(xs[a] - x) > 1.5 * (end - s.xs[0]) / (s.xs.length - 1)) return null;
      return a;
    }

    // read returns the position and the values there, in words.
    read() {
      const { f, plot } = this, h = f.heat;
      if (h) {
        const c = h.columns[nearest(h.mids, this.at)];
        if (!c) return null;
        const k = c.rows.indexOf(this.row), n = k < 0 ? 0 : c.counts[k];
        return [format(c.from, 's') + ' to ' + format(c.to, 's'), [[format(edgeOf(h, this.row), 'us') + ' to ' + format(edgeOf(h, this.row + 1), 'us'), String(n)], ['in the whole column', String(c.counts.reduce((p, q) => p + q, 0))]]];
      }
      let head = null;
      const values = f.series.map((s, k) => {
        const i = this.hidden(k) ? null : plot.cursor.idxs?.[k + 1], v = i === null ? null : this.data[k + 1][i];
        if (v === null || v === undefined) return [s.name || f.title, 'none'];
        head ??= this.data[0][i];
        return [s.name || f.title, (s.least?.includes(nearest(s.xs, this.data[0][i])) ? '>= ' : '') + format(v, f.y.unit)];
      });
      head ??= this.at;
      return [f.shared ? (f.middles ? 'around ' : 'at ') + format(head, 's') : format(this.at, f.x.unit), values];
    }

    // moved follows uPlot's cursor.
    moved() {
      const { plot, group, f } = this, { left, top } = plot.cursor, inside = left >= 0;
      if (!inside && this.at === null) return; // such as a new chart, while another one is read
      this.at = inside ? plot.posToVal(left, 'x') : null;
      if (inside && f.heat && !group.reading) {
        const { low, high, rows } = f.heat, y = plot.posToVal(top, 'y');
        this.row = Math.min(Math.max(Math.floor(Math.log(y / low) / Math.log(high / low) * rows), 0), rows - 1);
      }
      const head = this.say();
      if (group.reading) return;
      if (f.shared) group.read(this.at, this);
      group.on.at(head);
    }

    // say shows the values at the position. It returns the position's text.
    say() {
      const found = this.at === null ? null : this.read();
      if (this.cell) this.cell.textContent = found ? [found[0], ...found[1].map((v) => v.join(': '))].join(', ') : '';
      this.values?.forEach((e, k) => {
        let text = found ? found[1][k][1] : '';
        if (!found && this.group.on.newest && this.f.shared) {
          const v = this.data[k + 1].at(-1);
          text = v === null || v === undefined ? 'none' : format(v, this.f.y.unit);
        }
        if (text === 'none') text = '–';
        if (e.textContent !== text) e.textContent = text;
      });
      return found ? found[0] : '';
    }

    // point moves the position to x; null: nowhere.
    point(x) {
      const { min, max } = this.plot.scales.x, h = this.f.heat, off = x === null || x < min || x > max;
      this.plot.setCursor({ left: off ? -10 : this.plot.valToPos(x, 'x'), top: off ? -10 : h ? this.plot.valToPos(edgeOf(h, this.row + 0.5), 'y') : 0 });
    }

    leave() { this.point(null); }

    selected(u) {
      const { left, width } = u.select;
      if (width === 0) return;
      u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
      this.group.zoom(u.posToVal(left, 'x'), u.posToVal(left + width, 'x'));
    }

    key(e) {
      if (e.ctrlKey || e.metaKey || e.altKey) return;
      const { f, group } = this, { min, max } = this.plot.scales.x;
      const all = f.heat ? f.heat.mids : f.series.reduce((best, s, i) => (!this.hidden(i) && s.xs.length > best.length ? s.xs : best), []);
      const stops = all.filter((x) => x >= min && x <= max * (1 + 1e-12)), n = stops.length, by = e.shiftKey ? 10 : 1;
      const zoom = this.zooms() && { '+': () => group.zoomBy(0.5), '=': () => group.zoomBy(0.5), '-': () => group.zoomBy(2), 0: () => group.all() }[e.key];
      const step = { ArrowLeft: -by, ArrowRight: by, PageUp: -10, PageDown: 10, Home: -n, End: n }[e.key], rows = f.heat && { ArrowUp: by, ArrowDown: -by }[e.key];
      if (e.key === 'Escape') this.leave();
      if (zoom) { e.preventDefault(); zoom(); }
      if (!step && !rows || n === 0) return;
      e.preventDefault();
      if (rows) this.row = Math.min(Math.max(this.row + rows, 0), f.heat.rows - 1);
      let i = this.at === null ? (group.on.newest && step > -n ? n - 1 : step < 0 ? n : -1) : nearest(stops, this.at);
      i = Math.min(Math.max(i + (step ?? (i < 0 ? 1 : 0)), 0), n - 1);
      this.point(stops[i]);
      const found = this.read();
      if (found) group.on.said.textContent = found[0] + ': ' + found[1].map((v) => v.join(' ')).join(', ');
    }
  }

  // edgeOf is the lower bound of a row of a map.
  function edgeOf(h, i) { return h.low * (h.high / h.low) ** (i / h.rows); }

  return Object.freeze({ Group, Chart, make, numbered });
})();
