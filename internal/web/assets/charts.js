// Charts of frames. Each chart has a legend of buttons with the values at the pointer or
// of the newest frame, can be read with the keyboard, and shares its position with the
// others. Series differ in color and in dash.

import * as format from './format.js';

const DASHES = [[], [6, 4], [2, 3], [8, 3, 2, 3], [12, 4]];
const BLUE = 0, ORANGE = 1, GREEN = 2, PURPLE = 3, RED = 4, SKY = 5, OLIVE = 6, GREY = 7;
const SOLID = 0, DASHED = 1, DOTTED = 2, DASHDOT = 3, LONGDASH = 4;

const seconds = (us) => (us === null ? null : us / 1e6);
const length = (f) => f.to - f.from;

// whole says whether a frame is long enough for rates. The last one of a run is often
// not.
export const whole = (f, run) => length(f) >= 0.25 * run.interval;

// What can be drawn: name, unit, note, and series with a function of a frame. A series
// that is not always shown is left out if it is 0 or missing everywhere.
const rateOf = (name, tone, dash, key, always) => ({
  name, tone, dash, always, of: (f) => (length(f) > 0 ? f.counts[key] / length(f) : null),
});
const timeOf = (time) => [
  { name: 'max', tone: GREY, dash: DOTTED, of: (f) => seconds(f[time].max_us) },
  { name: 'p99', tone: ORANGE, dash: DASHED, of: (f) => seconds(f[time].p99_us) },
  { name: 'p90', tone: GREEN, dash: DASHDOT, of: (f) => seconds(f[time].p90_us) },
  { name: 'p50', tone: BLUE, dash: SOLID, of: (f) => seconds(f[time].p50_us) },
];

export function describe(run, frames) {
  const charts = [
    {
      id: 'rates', title: 'Events a second', zero: true, text: format.rate, limits: ['throughput'],
      note: run.reading ? 'Events that were read.' : 'Offered events are those due, by the time at which they are due. Acked ones count when their answer came.',
      series: [
        rateOf('offered', GREY, DOTTED, 'offered', run.schedule),
        rateOf('sent', ORANGE, DASHED, 'sent', !run.reading),
        rateOf('acked', BLUE, SOLID, 'acked', !run.reading && !run.unanswered),
        rateOf('consumed', GREEN, run.reading ? SOLID : LONGDASH, 'consumed', run.reading),
        rateOf('failed', RED, DASHDOT, 'failed'),
        rateOf('unknown', PURPLE, DOTTED, 'unknown'),
        rateOf('dropped', OLIVE, DASHDOT, 'dropped'),
        rateOf('unsent', SKY, LONGDASH, 'unsent'),
      ],
    },
    { id: 'response', title: 'Response time', note: 'From due to its answer, of the events answered in each interval.', log: true, text: format.measured, limit: 'response', series: timeOf('response') },
    { id: 'service', title: 'Service time', note: 'From sent to its answer, of the batches answered in each interval.', log: true, text: format.measured, limit: 'service', series: timeOf('service') },
    { id: 'end-to-end', title: 'End-to-end time', note: 'From due (or sent) until a consumer had it.', log: true, text: format.measured, limit: 'end_to_end', series: timeOf('end_to_end') },
    {
      id: 'in-flight', title: run.reading ? 'Behind' : 'In flight', zero: true, text: format.count,
      note: run.reading ? 'Events behind the end of the logs, at the end of each interval.' : 'Events that wait for an answer, at the end of each interval.',
      series: [
        { name: 'in flight', tone: BLUE, dash: SOLID, always: !run.reading, of: (f) => f.in_flight },
        { name: 'behind', tone: ORANGE, dash: DASHED, of: (f) => f.lag },
      ],
    },
    {
      id: 'generator', title: 'The generator', log: true, text: format.measured, limit: 'send_delay',
      note: 'Its own lateness, and the times in which it did not run. Both are part of response times, and the system did not cause them.',
      series: [
        { name: 'send delay p99', tone: BLUE, dash: SOLID, always: run.schedule, of: (f) => seconds(f.send_delay_p99_us) },
        { name: 'longest freeze', tone: RED, dash: DOTTED, points: true, of: (f) => (f.freezes > 0 ? seconds(f.frozen_max_us) : null) },
        { name: 'longest GC pause', tone: PURPLE, dash: DOTTED, points: true, of: (f) => (f.gc_pauses > 0 ? seconds(f.gc_pause_max_us) : null) },
      ],
    },
    {
      id: 'cores', title: 'Processors', zero: true, text: (v) => format.value(v, 'cores'), unit: 'cores',
      note: `Processor time a second. The generator may use ${run.processors}.`,
      series: [{ name: 'generator', tone: BLUE, dash: SOLID, always: true, of: (f) => (length(f) > 0 ? f.cpu_us / 1e6 / length(f) : null) }],
    },
    {
      id: 'memory', title: 'Memory', zero: true, text: format.bytes, unit: 'bytes', note: 'At the end of each interval.',
      series: [{ name: 'generator', tone: BLUE, dash: SOLID, always: true, of: (f) => f.rss || null }],
    },
  ];
  for (const g of gauges(frames)) {
    if (g.from === 'host' && g.unit === 'bytes') continue; // it dwarfs the memory of the processes
    let c = charts.find((x) => x.unit === g.unit);
    if (!c) {
      c = { id: 'unit-' + g.unit.replace(/\W+/g, '-'), title: 'Own metrics' + (g.unit ? ', ' + g.unit : ''), unit: g.unit, zero: true, note: 'As reported by the programs themselves.', text: (v) => format.value(v, g.unit), series: [] };
      charts.push(c);
    }
    const n = c.series.length;
    c.series.push({
      name: (g.from === 'host' ? 'this machine' : g.from) + (g.unit === 'cores' && /^cpu$/i.test(g.name) ? '' : ' ' + g.name),
      tone: [GREEN, ORANGE, PURPLE, SKY, OLIVE, RED][n % 6], dash: n % DASHES.length,
      of: (f) => f.gauges?.find((x) => x.from === g.from && x.name === g.name && x.unit === g.unit)?.value ?? null,
    });
  }
  for (const c of charts) c.series = c.series.filter((s) => s.always || frames.some((f) => s.of(f)));
  return charts.filter((c) => c.series.length > 0);
}

function gauges(frames) {
  const found = new Map();
  for (const f of frames) {
    for (const g of f.gauges ?? []) {
      g.unit ??= '';
      found.set(`${g.from} ${g.name} ${g.unit}`, g);
    }
  }
  const order = ['system', 'server', 'host'];
  return [...found.values()].sort((a, b) => order.indexOf(a.from) - order.indexOf(b.from));
}

// The limits that a chart shows as lines: { text, value }.
function limitsOf(chart, run) {
  return (run.limits ?? []).filter((l) => (chart.limit ? l.time === chart.limit : !l.time && chart.limits?.includes(l.name)));
}

// columns are the times and the values of series. Where a frame is missing there is a
// gap.
function columns(frames, { series, log }, run) {
  const out = [[], ...series.map(() => [])];
  let before;
  for (const f of frames) {
    if (!whole(f, run)) continue;
    if (before !== undefined && f.from > before + 0.5 * length(f)) {
      out[0].push((before + f.from) / 2);
      series.forEach((_, i) => out[i + 1].push(null));
    }
    out[0].push(f.to);
    series.forEach((s, i) => {
      const v = s.of(f);
      out[i + 1].push(log && v !== null ? Math.max(v, 1e-6) : v); // a logarithm has no 0
    });
    before = f.to;
  }
  return out;
}

// style is a color of the theme.
const colors = new Map();
function style(name) {
  if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim());
  return colors.get(name);
}

const POWERS = Array.from({ length: 50 }, (_, i) => 2 ** i);

// axisMax rounds up, so that the axis does not jump with each value.
function axisMax(v, bytes) {
  if (!(v > 0)) return 1;
  if (bytes) {
    const p = 2 ** Math.floor(Math.log2(v));
    return [1, 1.25, 1.5, 1.75].find((m) => m * p >= v * 1.02) * p || 2 * p;
  }
  const p = 10 ** Math.floor(Math.log10(v));
  return [1, 1.5, 2, 3, 5, 7.5, 10].find((m) => m * p >= v * 1.02) * p || 10 * p;
}

function make(tag, attributes, text) {
  const e = document.createElement(tag);
  for (const k in attributes) e.setAttribute(k, attributes[k]);
  if (text !== undefined) e.textContent = text;
  return e;
}

// Charts draws the charts of a run into an element.
export class Charts {
  constructor(into, said) {
    this.into = into;
    this.said = said;
    this.window = 0;
    this.hidden = new Set();
    this.list = [];
    new ResizeObserver(() => this.resize()).observe(into);
    matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => this.rebuild());
  }

  show(run, frames) {
    this.run = run;
    this.frames = frames;
    const charts = describe(run, frames);
    const shape = JSON.stringify(charts.map((c) => [c.id, c.series.map((s) => s.name)]));
    if (shape !== this.shape) {
      this.shape = shape;
      this.build(charts);
    } else {
      this.list.forEach((c, i) => { c.chart = charts[i]; });
    }
    this.update();
  }

  rebuild() {
    colors.clear();
    this.shape = undefined;
    if (this.run) this.show(this.run, this.frames);
  }

  setWindow(s) {
    this.window = s;
    if (this.run) this.update();
  }

  // range is the span of time that is shown.
  range() {
    const end = this.frames.length ? this.frames[this.frames.length - 1].to : 1;
    if (!this.window) return [0, Math.max(end, 10)];
    return [Math.max(0, end - this.window), Math.max(end, Math.min(this.window, 10))];
  }

  update() {
    const [from, to] = this.range();
    const shown = this.window ? this.frames.filter((f) => f.to > from) : this.frames;
    for (const c of this.list) {
      c.data = columns(shown, c.chart, this.run);
      c.plot.setData(c.data, false);
      c.plot.setScale('x', { min: from, max: to });
      this.legend(c);
    }
  }

  build(charts) {
    for (const c of this.list) c.plot.destroy();
    const focus = document.activeElement?.dataset?.chart;
    this.into.replaceChildren();
    this.list = charts.map((chart) => this.figure(chart));
    if (focus) this.into.querySelector(`[data-chart="${focus}"]`)?.focus();
  }

  figure(chart) {
    const figure = make('figure', { id: 'c-' + chart.id });
    const caption = make('figcaption');
    caption.append(make('h3', { id: 'h-' + chart.id }, chart.title), make('p', {}, chart.note));
    const legend = make('ul', { class: 'legend' });
    const box = make('div', { class: 'plot', tabindex: '0', role: 'img', 'data-chart': chart.id, 'aria-labelledby': 'h-' + chart.id, 'aria-description': 'Arrow keys move along the time, Home and End to its ends.' });
    figure.append(caption, legend, box);
    this.into.append(figure);
    const c = { chart, box, values: [] };
    chart.series.forEach((s, i) => {
      const key = chart.id + ' ' + s.name;
      const button = make('button', { type: 'button', 'aria-pressed': String(!this.hidden.has(key)) });
      const value = make('b');
      button.append(sample(s), make('span', {}, s.name), value);
      button.addEventListener('click', () => {
        const on = this.hidden.delete(key) || !this.hidden.add(key);
        button.setAttribute('aria-pressed', String(on));
        c.plot.setSeries(i + 1, { show: on });
      });
      const item = make('li');
      item.append(button);
      legend.append(item);
      c.values.push(value);
    });
    for (const l of limitsOf(chart, this.run)) legend.append(make('li', { class: 'limit' }, 'limit: ' + l.text));
    c.plot = new uPlot(this.options(c), columns([], chart, this.run), box);
    box.addEventListener('keydown', (e) => this.key(c, e));
    box.addEventListener('blur', () => { for (const o of this.list) o.plot.setCursor({ left: -10, top: -10 }); });
    return c;
  }

  options(c) {
    const { chart } = c, limits = limitsOf(chart, this.run), muted = style('muted'), grid = style('grid');
    const font = '12px system-ui, sans-serif';
    return {
      width: Math.max(c.box.clientWidth, 200), height: 210, padding: [10, 12, 0, 0],
      legend: { show: false },
      cursor: { sync: { key: 'run' }, drag: { x: false, y: false }, points: { size: 6 }, y: false },
      scales: {
        x: { time: false },
        y: chart.log
          ? { distr: 3, range: (u, min, max) => decades(min, max, limits) }
          : { range: (u, min, max) => [0, axisMax(Math.max(max ?? 0, ...limits.map((l) => l.value)), chart.unit?.startsWith('bytes'))] },
      },
      axes: [
        { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, size: 34, values: (u, v) => v.map(format.time), space: 80 },
        { stroke: muted, font, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1 }, size: 74, incrs: chart.unit?.startsWith('bytes') ? POWERS : undefined, values: (u, v) => v.map((x) => (x === null ? '' : chart.text(x))) },
      ],
      series: [{}, ...chart.series.map((s) => ({
        label: s.name, stroke: style('t' + s.tone), width: 1.6, dash: s.points ? undefined : DASHES[s.dash], spanGaps: false,
        show: !this.hidden.has(chart.id + ' ' + s.name), paths: s.points ? () => null : undefined,
        points: s.points ? { show: true, size: 7, fill: style('t' + s.tone) } : { show: alone, size: 4 },
      }))],
      hooks: {
        drawClear: [(u) => this.shade(u)],
        draw: [(u) => lines(u, limits)],
        setCursor: [(u) => { c.at = u.cursor.idx ?? undefined; this.legend(c); }],
      },
    };
  }

  // shade colors the warm-up and the frames in which the generator froze, and marks remarks.
  shade(u) {
    const { ctx } = u, { left, top, width, height } = u.bbox, px = devicePixelRatio;
    const x = (t) => Math.round(Math.min(left + width, Math.max(left, u.valToPos(t, 'x', true))));
    ctx.save();
    for (const f of this.frames) {
      const warm = f.phase === 'warm-up', a = x(f.from), w = Math.max(x(f.to) - a, 0);
      if (w === 0 || !warm && !f.freezes) continue;
      ctx.fillStyle = style(warm && !f.freezes ? 'band' : 'freeze');
      ctx.fillRect(a, top, w, height);
      if (f.freezes) {
        ctx.fillStyle = style('t1');
        ctx.fillRect(a, top + height - 3 * px, w, 3 * px);
      }
    }
    ctx.fillStyle = ctx.strokeStyle = style('muted');
    ctx.lineWidth = px;
    ctx.setLineDash([px, 3 * px]);
    for (const f of this.frames) {
      for (const m of f.marks ?? []) {
        const a = u.valToPos(m.at, 'x', true);
        if (a < left || a > left + width) continue;
        ctx.beginPath();
        ctx.moveTo(a, top);
        ctx.lineTo(a, top + height);
        ctx.stroke();
      }
    }
    ctx.restore();
  }

  // legend shows the values at the cursor, else the newest.
  legend(c) {
    const n = c.data?.[0].length ?? 0;
    const i = c.at !== undefined && c.at < n ? c.at : n - 1;
    c.chart.series.forEach((s, k) => {
      const v = i < 0 ? null : c.data[k + 1][i];
      const text = v === null || v === undefined ? '–' : c.chart.text(v);
      if (c.values[k] && c.values[k].textContent !== text) c.values[k].textContent = text;
    });
    document.getElementById('at').textContent = c.at !== undefined && n > 0 ? 'at ' + format.time(c.data[0][Math.min(i, n - 1)]) : '';
  }

  key(c, e) {
    const n = c.data?.[0].length ?? 0;
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -n, End: n }[e.key];
    if (!step || n === 0) return;
    e.preventDefault();
    const i = Math.min(n - 1, Math.max(0, (c.at ?? n - 1) + step));
    const at = c.data[0][i];
    for (const o of this.list) o.plot.setCursor({ left: o.plot.valToPos(at, 'x'), top: 0 });
    this.said.textContent = 'at ' + format.time(at) + ': ' + c.chart.series.map((s, k) => {
      const v = c.data[k + 1][i];
      return s.name + ' ' + (v === null || v === undefined ? 'none' : c.chart.text(v));
    }).join(', ');
  }

  resize() {
    for (const c of this.list) {
      const width = Math.max(c.box.clientWidth, 200);
      if (width !== c.plot.width) c.plot.setSize({ width, height: c.plot.height });
    }
  }
}

// alone draws a point for a value between two gaps, which no line would show.
function alone(u, i) {
  const values = u.data[i];
  return values.length < 3;
}

// decades is the range of a logarithmic axis: whole powers of ten.
function decades(min, max, limits) {
  const all = [min, max, ...limits.map((l) => l.value)].filter((v) => v > 0);
  if (all.length === 0) return [1e-3, 1];
  const low = Math.floor(Math.log10(Math.min(...all)) + 1e-9), high = Math.ceil(Math.log10(Math.max(...all)) - 1e-9);
  return [10 ** low, 10 ** Math.max(high, low + 1)];
}

// lines draws the limits of the workload.
function lines(u, limits) {
  const { ctx } = u, { left, top, width, height } = u.bbox, px = devicePixelRatio;
  ctx.save();
  ctx.strokeStyle = style('ink');
  ctx.font = `${11 * px}px system-ui, sans-serif`;
  ctx.textAlign = 'right';
  for (const l of limits) {
    const y = u.valToPos(l.value, 'y', true);
    if (!(y >= top && y <= top + height)) continue;
    ctx.lineWidth = 1.5 * px;
    ctx.setLineDash([10 * px, 3 * px, 2 * px, 3 * px]);
    ctx.beginPath();
    ctx.moveTo(left, y);
    ctx.lineTo(left + width, y);
    ctx.stroke();
    const at = y - 5 * px < top + 10 * px ? y + 13 * px : y - 5 * px, w = ctx.measureText(l.text).width;
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = style('background');
    ctx.fillRect(left + width - w - 6 * px, at - 10 * px, w + 4 * px, 13 * px);
    ctx.globalAlpha = 1;
    ctx.fillStyle = style('ink');
    ctx.fillText(l.text, left + width - 4 * px, at);
  }
  ctx.restore();
}

// sample draws the line of a series for the legend.
function sample(s) {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [k, v] of Object.entries({ viewBox: '0 0 28 12', width: 28, height: 12, 'aria-hidden': 'true' })) svg.setAttribute(k, v);
  const shape = document.createElementNS(svg.namespaceURI, s.points ? 'circle' : 'path');
  const attributes = s.points ? { cx: 14, cy: 6, r: 4, class: 'f' + s.tone } : { d: 'M1 6h26', class: 't' + s.tone, 'stroke-dasharray': DASHES[s.dash].join(' ') };
  for (const [k, v] of Object.entries(attributes)) svg.append(shape), shape.setAttribute(k, v);
  return svg;
}
