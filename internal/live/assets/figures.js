// The figures of frames, for the charts that they share with the page of a report.

const BLUE = 0, ORANGE = 1, GREEN = 2, PURPLE = 3, RED = 4, SKY = 5, OLIVE = 6, GREY = 7;
const SOLID = 0, DASHED = 1, DOTTED = 2, DASHDOT = 3, LONGDASH = 4;
const STEPS = 1, DOTS = 3; // styles
const length = (f) => f.to - f.from;

// whole says whether a frame is long enough for rates. The last one of a run is often
// not.
export const whole = (f, run) => length(f) >= 0.25 * run.interval;

// What can be drawn: name, unit, note, and series with a function of a frame. A series
// that is not always shown is left out if it is 0 or missing everywhere.
const rateOf = (name, tone, dash, key, always) => ({
  name, tone, dash, always, of: (f) => (length(f) > 0 ? f.counts[key] / length(f) : null),
});
// The percentiles of a report's page, of which a frame has some.
const percentiles = JSON.parse(document.getElementById('charts').dataset.percentiles).filter((p) => ['p50', 'p90', 'p99', 'max'].includes(p.name));
const p99 = percentiles.find((p) => p.name === 'p99');
const timeOf = (time) => percentiles.map(({ name, tone, dash, p }) => ({
  name, tone, dash, of: (f) => f[time][name + '_us'], least: (f) => f[time].at_least && p >= f[time].at_least,
}));

// The main time of a run, and of the bins of a frame, is the first of these that it has.
const MAIN = ['response', 'end_to_end', 'service'];
const has = (f, time) => f[time].p99_us !== null;

export function describe(run, frames) {
  const all = [
    {
      id: 'rates', title: 'Events a second', zero: true, unit: '/s', limits: ['throughput'],
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
    { id: 'response', title: 'Response time', note: 'From due to its answer, of the events answered in each interval.', log: true, unit: 'measured', limit: 'response', series: timeOf('response') },
    { id: 'service', title: 'Service time', note: 'From sent to its answer, of the batches answered in each interval.', log: true, unit: 'measured', limit: 'service', series: timeOf('service') },
    { id: 'end-to-end', title: 'End-to-end time', note: 'From due (or sent) until a consumer had it.', log: true, unit: 'measured', limit: 'end_to_end', series: timeOf('end_to_end') },
    {
      id: 'in-flight', title: run.reading ? 'Behind' : 'In flight', zero: true, unit: 'events',
      note: run.reading ? 'Events behind the end of the logs, at the end of each interval.' : 'Events that wait for an answer, at the end of each interval.',
      series: [
        { name: 'in flight', tone: BLUE, dash: SOLID, always: !run.reading, of: (f) => f.in_flight },
        { name: 'behind', tone: ORANGE, dash: DASHED, of: (f) => f.lag },
      ],
    },
    {
      id: 'generator', title: 'The generator', log: true, unit: 'measured', limit: 'send_delay',
      note: 'Its own lateness, and the times in which it did not run. Both are part of response times, and the system did not cause them.',
      series: [
        { name: 'send delay p99', tone: p99.tone, dash: p99.dash, always: run.schedule, of: (f) => f.send_delay_p99_us },
        { name: 'longest freeze', tone: RED, dash: DOTTED, style: DOTS, of: (f) => (f.freezes > 0 ? f.frozen_max_us : null) },
        { name: 'longest GC pause', tone: PURPLE, dash: DOTTED, style: DOTS, of: (f) => (f.gc_pauses > 0 ? f.gc_pause_max_us : null) },
      ],
    },
    {
      id: 'cores', title: 'Processors', zero: true, unit: 'cores', metrics: true,
      note: `Processor time a second. The generator may use ${run.processors}.`,
      series: [{ name: 'generator', tone: ORANGE, dash: DASHED, always: true, of: (f) => (length(f) > 0 ? f.cpu_us / 1e6 / length(f) : null) }],
    },
    {
      id: 'memory', title: 'Memory', zero: true, unit: 'bytes', metrics: true, note: 'At the end of each interval.',
      series: [{ name: 'generator', tone: ORANGE, dash: DASHED, always: true, of: (f) => f.rss || null }],
    },
  ];
  const main = MAIN.find((t) => frames.some((f) => has(f, t)));
  if (main) {
    const at = all.findIndex((c) => c.limit === main), name = all[at].title;
    all.splice(1, 0, ...all.splice(at, 1),
      { id: 'distribution', title: name.replace(' time', '-time histogram'), note: 'How many took this long, in 20 bins per power of ten.', bins: true, limit: main, unit: 'events', series: [{ name: main.replaceAll('_', ' '), tone: BLUE, dash: SOLID, always: true }] },
      { id: 'map', title: name + 's', note: 'All of them: how many took how long, and when. Darker (in the dark theme: lighter) is more.', map: true, limit: main, unit: 'us', series: [{ name: '', always: true }] });
  }
  for (const g of gauges(frames)) {
    if (g.from === 'host' && g.unit === 'bytes') continue; // it dwarfs the memory of the processes
    let c = all.find((x) => x.metrics && x.unit === g.unit);
    if (!c) {
      c = { id: 'unit-' + g.unit.replace(/\W+/g, '-'), title: 'Own metrics' + (g.unit ? ', ' + g.unit : ''), unit: g.unit, metrics: true, zero: true, note: 'As reported by the programs themselves.', series: [] };
      all.push(c);
    }
    // As on a report's page: the system is blue and comes first, the generator is orange, this machine grey.
    const at = c.series.findIndex((s) => s.name === 'generator'), among = at < 0 ? c.series.length : at, host = at >= 0 && g.from === 'host';
    const [tone, dash] = host ? [GREY, DOTTED] : at < 0 ? [among % GREY, among % 5] : [[BLUE, SOLID], [PURPLE, DASHDOT], [GREEN, LONGDASH], [SKY, DOTTED], [OLIVE, DASHED]][among % 5];
    c.series.splice(host ? c.series.length : among, 0, {
      name: (g.from === 'host' ? 'this machine' : g.from) + (g.unit === 'cores' && /^cpu$/i.test(g.name) ? '' : ' ' + g.name),
      tone, dash,
      of: (f) => f.gauges?.find((x) => x.from === g.from && x.name === g.name && x.unit === g.unit)?.value ?? null,
    });
  }
  for (const c of all) c.series = c.series.filter((s) => s.always || frames.some((f) => s.of(f)));
  return all.filter((c) => c.series.length > 0);
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

// limitsOf are the values that a chart shows as lines: limits of the workload and, on the rates of
// a search, the ends of what is known of the ceiling.
function limitsOf(c, { limits = [], search }) {
  const out = limits.filter((l) => (c.limit ? l.time === c.limit : !l.time && c.limits?.includes(l.name))).map((l) => ({ text: l.text, value: c.limit ? l.value * 1e6 : l.value }));
  if (c.id === 'rates' && search?.holds) out.push({ text: 'holds ' + format(search.holds, '/s'), value: search.holds });
  if (c.id === 'rates' && search?.fails) out.push({ text: 'fails ' + format(search.fails, '/s'), value: search.fails });
  return out;
}

// marksOf are the warm-up, the drain, the frames in which the generator froze, the faults until they were healed,
// and the remarks. A freeze is shaded, and needs no remark.
function marksOf(frames) {
  const shades = [], remarks = [], faults = new Map();
  for (const f of frames) {
    if ((f.phase === 'warm-up' || f.phase === 'drain') && f.to > f.from) shades.push([f.from, f.to, '', 0]);
    if (f.freezes) shades.push([f.from, f.to, '', 2]);
    for (const m of f.marks ?? []) {
      if (m.kind !== 'freeze') remarks.push([m.at, m.at, m.text, 0]);
      const name = m.text.slice(m.text.indexOf(' ') + 1);
      if (m.kind === 'fault') {
        faults.set(name, [m.at, frames.at(-1).to, '', 3]);
        shades.unshift(faults.get(name));
      } else if (m.kind === 'heal' && faults.has(name)) {
        faults.get(name)[1] = m.at;
        faults.delete(name);
      }
    }
  }
  return [...shades.sort((a, b) => a[3] % 3 - b[3] % 3), ...remarks]; // what is more important in front
}

// edge is the lower bound of a bin, in microseconds.
const edge = (i) => 10 ** (i / 20);

// binned are the figures of the bins of frames: their sum as a histogram, and each as a column of a map. Frames
// whose bins are of another time, as those after the last answer of a round trip, are left out. If no frame is left,
// as while the system stalls, nothing is drawn, between 1 us and 1 s.
function binned(c, run, frames, marks) {
  const with_ = frames.filter((f) => f.bins && MAIN.find((t) => has(f, t)) === c.limit), limits = limitsOf(c, run), some = with_.length > 0;
  const first = some ? Math.min(...with_.map((f) => f.bins[0])) : 0, last = some ? Math.max(...with_.map((f) => f.bins[0] + f.bins.length - 2)) : 119;
  if (c.map) {
    const columns = with_.map((f) => {
      const rows = f.bins.slice(1).map((n, i) => [f.bins[0] + i - first, n]).filter(([, n]) => n > 0);
      return { from: f.from, to: f.to, rows: rows.map((r) => r[0]), counts: rows.map((r) => r[1]) };
    });
    return {
      name: c.id, title: c.title, shared: true, x: { unit: 's' }, y: { unit: 'us', log: true }, series: [], marks, limits,
      heat: { low: edge(first), high: edge(last + 1), rows: last - first + 1, columns, mids: columns.map((k) => (k.from + k.to) / 2) },
    };
  }
  const counts = new Array(last - first + 1).fill(0);
  for (const f of with_) f.bins.slice(1).forEach((n, i) => { counts[f.bins[0] - first + i] += n; });
  const xs = [...counts.keys(), counts.length].map((i) => edge(first + i));
  return {
    name: c.id, title: c.title, x: { unit: 'measured', log: true }, y: { unit: 'events', zero: true }, limits: limits.map((l) => ({ ...l, x: true })),
    series: [{ name: c.series[0].name, tone: BLUE, dash: SOLID, style: STEPS, filled: true, xs, y: [...counts, 0], least: [] }],
  };
}

// figure is what a chart draws of frames. Where a frame is missing there is a gap.
function figure(c, run, frames, marks) {
  if (c.bins || c.map) return binned(c, run, frames, marks);
  const limits = limitsOf(c, run), xs = [], series = c.series.map(({ name, tone, dash, style }) => ({ name, tone, dash, style, xs, y: [], least: [] }));
  let before;
  for (const f of frames) {
    if (!whole(f, run)) continue;
    if (before !== undefined && f.from > before + 0.5 * length(f)) {
      xs.push((before + f.from) / 2);
      for (const s of series) s.y.push(null);
    }
    c.series.forEach((s, i) => {
      if (s.least?.(f)) series[i].least.push(xs.length);
      series[i].y.push(s.of(f));
    });
    xs.push(f.to);
    before = f.to;
  }
  const between = c.id === 'rates' && run.search?.holds && run.search.fails ? [run.search.holds, run.search.fails] : undefined;
  return { name: c.id, title: c.title, shared: true, x: { unit: 's' }, y: { unit: c.unit, log: Boolean(c.log), zero: c.zero, round: true }, series, marks, limits, between };
}

// ramp is the legend of a map: its colors.
function ramp() {
  const legend = charts.make('p', { class: 'legend' }, '1 '), svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  for (const [k, v] of Object.entries({ class: 'ramp', viewBox: '0 0 200 12', width: 200, height: 12, 'aria-hidden': 'true' })) svg.setAttribute(k, v);
  for (let i = 0; i < 10; i++) {
    const cell = document.createElementNS(svg.namespaceURI, 'path');
    cell.setAttribute('class', 'cells h' + i);
    cell.setAttribute('d', `M${20 * i} 0h20v12h-20z`);
    svg.append(cell);
  }
  legend.append(svg, ' most in a cell');
  return legend;
}

// Figures draws the charts of a run into an element.
export class Figures {
  constructor(into, said) {
    this.into = into;
    this.window = 0;
    this.group = new charts.Group({ said, newest: true, at: (text) => { document.getElementById('at').textContent = text; } });
  }

  show(run, frames) {
    this.run = run;
    this.frames = frames;
    const all = describe(run, frames);
    const shape = JSON.stringify(all.map((c) => [c.id, c.series.map((s) => s.name), limitsOf(c, run)]));
    // range is the span of time that is shown.
    const end = frames.length ? frames[frames.length - 1].to : 1;
    const [from, to] = this.window ? [Math.max(0, end - this.window), Math.max(end, Math.min(this.window, 10))] : [0, Math.max(end, 10)];
    const shown = this.window ? frames.filter((f) => f.to > from) : frames, marks = marksOf(shown);
    this.group.range = [from, to];
    this.marks = marks;
    if (shape !== this.shape) this.build(all, (c) => figure(c, run, shown, marks));
    else all.forEach((c, i) => this.group.list[i].set(figure(c, run, shown, marks)));
    this.shape = shape;
  }

  // key are the shades and marks of the charts, for their key.
  key() {
    const marks = this.marks ?? [];
    return [new Set(marks.filter((m) => m[1] > m[0]).map((m) => ['band', 'stall', 'freeze', 'fault'][m[3]])), marks];
  }

  // rebuild begins with another run.
  rebuild() { this.shape = undefined; }

  setWindow(s) {
    this.window = s;
    if (this.run) this.show(this.run, this.frames);
  }

  build(all, of) {
    const focus = document.activeElement?.closest('figure')?.id;
    this.group.clear();
    this.into.replaceChildren();
    for (const c of all) {
      const { make } = charts, f = make('figure', { id: 'c-' + c.id }), caption = make('figcaption'), legend = c.map ? ramp() : make('ul', { class: 'legend' }), plot = make('div', { class: 'plot' });
      caption.append(make('h2', {}, c.title), make('p', {}, format.unbroken(c.note)));
      f.append(caption, legend, plot);
      this.into.append(f);
      new charts.Chart(of(c), plot, legend, this.group);
      if (focus === f.id) plot.focus();
    }
  }
}
