// The live page: it follows the newest run, and shows its numbers and charts.

import { Feed, Refused, runs, session } from './feed.js';
import { Figures, whole } from './figures.js';
import * as team from './team.js';

const $ = (id) => document.getElementById(id);
const figures = new Figures($('charts'), $('said'));
// An address with ?run=ID stays with that run.
const pinned = new URLSearchParams(location.search).get('run');
let feed, done, known = [], follow = !pinned;

const SIGNS = { live: '●', lost: '!', end: '■', done: '■', wait: '…', refused: '✗' };

function state(kind, text) {
  $('sign').textContent = SIGNS[kind];
  $('state').textContent = text;
  document.documentElement.dataset.state = kind;
}

// terms fills a list of names and values, and changes only what is new.
function terms(into, rows) {
  const wanted = rows.filter(Boolean);
  while (into.children.length > wanted.length * 2) into.lastChild.remove();
  wanted.forEach(([name, text, kind], i) => {
    if (into.children.length < i * 2 + 2) into.append(document.createElement('dt'), document.createElement('dd'));
    const [dt, dd] = [into.children[i * 2], into.children[i * 2 + 1]];
    if (dt.textContent !== name) dt.textContent = name;
    if (dd.textContent !== text) dd.textContent = text;
    dd.className = kind ?? '';
  });
}

const COUNTS = ['offered', 'sent', 'acked', 'consumed', 'unread', 'failed', 'unknown', 'dropped', 'unsent'];
const BAD = new Set(['unread', 'failed', 'unknown', 'dropped', 'unsent']);

function usual(run, name) {
  switch (name) {
    case 'offered': return run.schedule;
    case 'sent': return !run.reading;
    case 'acked': return !run.reading && !run.unanswered;
    case 'consumed': return run.reading;
    case 'failed': return !run.reading;
  }
  return false;
}

function numbers() {
  const { run, frames } = feed;
  const sum = {};
  for (const f of frames) for (const k in f.counts) sum[k] = (sum[k] ?? 0) + f.counts[k];
  const f = frames.findLast((x) => whole(x, run)), end = frames[frames.length - 1];
  const counts = COUNTS.filter((k) => usual(run, k) || sum[k]);
  terms($('sum'), [
    ['time', format(end?.to ?? 0, 's')],
    ...counts.map((k) => [k, format.whole(sum[k] ?? 0), BAD.has(k) && sum[k] ? 'bad' : '']),
    ['bytes', format(sum.bytes ?? 0, 'bytes')],
  ]);
  if (!f) return;
  const s = f.to - f.from;
  const main = f.response.p99_us !== null ? ['response', f.response] : f.end_to_end.p99_us !== null ? ['end to end', f.end_to_end] : ['service', f.service];
  const least = (p) => (main[1].at_least && p >= main[1].at_least ? '≥ ' : '');
  const times = main[1].p99_us === null ? [] : [
    [main[0] + ' p50', least(50) + format(main[1].p50_us, 'measured')], [main[0] + ' p99', least(99) + format(main[1].p99_us, 'measured')], [main[0] + ' max', least(100) + format(main[1].max_us, 'measured')],
  ];
  terms($('now'), [
    ...counts.filter((k) => usual(run, k) || f.counts[k]).map((k) => [k, format(f.counts[k] / s, '/s'), BAD.has(k) && f.counts[k] ? 'bad' : '']),
    ...times,
    run.reading ? f.lag !== null && ['behind', format.whole(f.lag)] : !run.unanswered && ['in flight', format.whole(f.in_flight)],
    f.send_delay_p99_us !== null && ['send delay p99', format(f.send_delay_p99_us, 'us'), f.send_delay_p99_us > 10e3 ? 'bad' : ''],
    f.freezes > 0 && ['freezes', `${f.freezes}, up to ${format(f.frozen_max_us, 'us')}`, 'bad'],
  ]);
}

function remarks() {
  const all = feed.frames.flatMap((f) => f.marks ?? []);
  $('remarks').hidden = all.length === 0;
  const list = $('remarks').querySelector('ul');
  if (list.children.length === all.length) return;
  list.replaceChildren(...all.slice(-200).map((m) => {
    const li = document.createElement('li');
    const b = document.createElement('b');
    b.textContent = format(m.at, 's');
    li.append(b, ' ', m.text);
    return li;
  }));
}

let waiting = false;

function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (!feed?.run) return;
    figures.show(feed.run, feed.frames);
    numbers();
    remarks();
    const f = feed.frames[feed.frames.length - 1];
    if (f && !done && document.documentElement.dataset.state === 'live') state('live', `${f.phase}, ${format(f.to, 's')}` + (f.left_us > 0 ? `, ${format(f.left_us, 'us')} left` : ''));
    document.documentElement.dataset.frames = String(feed.frames.length);
  });
}

function result(d) {
  done = d;
  const into = $('result');
  into.hidden = false;
  const line = (tag, text, cls) => {
    const e = document.createElement(tag);
    e.textContent = text;
    if (cls) e.className = cls;
    return e;
  };
  into.replaceChildren(line('h2', 'Result'), line('p', d.error ?? d.headline ?? '', 'answer'));
  const list = line('ul', '', 'marks');
  const sign = { good: '✓', bad: '✗', caution: '!', open: '?', remark: '·' };
  for (const v of d.verdicts ?? []) {
    const li = line('li', '', v.mark);
    li.append(line('b', `${sign[v.mark] ?? '·'} ${v.label}`), ' ' + v.text);
    list.append(li);
  }
  into.append(list);
  if (d.report) {
    const p = line('p', 'The report: ');
    p.append(line('code', `carronade report open ${d.report}`));
    into.append(p);
  }
  state('done', d.error ? 'ended without a report' : 'ended');
  team.ended();
  draw();
}

async function choose(id) {
  feed?.close();
  done = undefined;
  $('result').hidden = true;
  $('remarks').querySelector('ul').replaceChildren();
  state('wait', 'connecting');
  const mine = new Feed(id, {
    frames: () => mine === feed && draw(),
    done: (d) => mine === feed && result(d),
    next: (next) => { if (mine === feed) again(next); },
    state: (kind) => mine === feed && connection(kind),
  });
  feed = mine;
  figures.rebuild();
  await feed.open();
  const { run } = feed;
  $('title').textContent = `${run.op} ${run.target}`;
  document.title = `${run.op} ${run.target} - Carronade`;
  $('about').textContent = [run.title, 'report ' + id, 'started ' + new Date(run.started_at).toLocaleTimeString(),
    ...Object.entries(run.labels ?? {}).map(([k, v]) => `${k}=${v}`), ...(run.limits ?? []).map((l) => l.text)].filter(Boolean).join(' · ');
  $('last').textContent = run.interval > 1 ? 'Last ' + format(run.interval, 's') : 'Last second';
  $('runs').value = id;
}

function connection(kind) {
  if (kind === 'live') { if (!done) state('live', 'running'); draw(); return; }
  if (done) return;
  if (kind === 'lost') state('lost', 'the connection was lost; trying again');
  if (kind === 'end') state('end', 'the program has ended');
}

// again reads the list of runs, and shows the newest one if the page follows.
async function again(next) {
  known = await runs();
  $('which').hidden = known.length < 2;
  $('runs').replaceChildren(...known.map((r) => {
    const o = document.createElement('option');
    o.value = r.id;
    o.textContent = [new Date(r.started_at).toLocaleTimeString(), r.title, r.labels?.['find-role'], r.op, r.target, `(${r.id})`].filter(Boolean).join(' ');
    return o;
  }));
  if (feed) $('runs').value = feed.id;
  if (next && follow) await choose(next);
}

async function start() {
  try {
    await session();
    const serves = await team.start();
    for (;;) {
      await again();
      if (pinned ? known.some((r) => r.id === pinned) : known.length > 0) break;
      state('wait', serves ? 'no run is in progress' : 'waiting for a run');
      await new Promise((r) => setTimeout(r, 500));
    }
    await choose(pinned ?? known[known.length - 1].id);
  } catch (e) {
    if (e instanceof Refused && e.status === 401) state('refused', 'This page needs its token: open the address that carronade printed.');
    else {
      console.error(e);
      state('lost', 'The program does not answer. It may have ended.');
    }
  }
  document.documentElement.dataset.ready = '';
}

$('runs').addEventListener('change', (e) => {
  follow = e.target.value === known[known.length - 1].id;
  choose(e.target.value).catch(() => state('lost', 'The program does not answer. It may have ended.'));
});
for (const b of document.querySelectorAll('[data-window]')) {
  b.addEventListener('click', () => {
    for (const o of document.querySelectorAll('[data-window]')) o.setAttribute('aria-pressed', String(o === b));
    figures.setWindow(Number(b.dataset.window));
  });
}
start();
