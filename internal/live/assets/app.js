// The live page: it follows the newest run, and shows its numbers and charts.

import { Feed, Refused, runs, session } from './feed.js';
import { Figures, whole } from './figures.js';
import * as team from './team.js';

const $ = (id) => document.getElementById(id);
const figures = new Figures($('charts'), $('said'));
const result = document.querySelector('.result');
// An address with ?run=ID stays with that run.
const pinned = new URLSearchParams(location.search).get('run');
let feed, done, known = [], follow = !pinned;

// band shows a band, and says a new state to screen readers.
function band(b) {
  page.band(result, b);
  const text = b.word + ', ' + b.text.split(',')[0];
  if ($('state').textContent !== text) $('state').textContent = text;
}

// state shows a state of the page in place of that of a run.
function state(kind, text, word = 'WAITING') {
  document.documentElement.dataset.state = kind;
  page.band(result, { word, mark: kind === 'refused' || kind === 'lost' ? 'caution' : 'remark', text, facts: [] });
  $('state').textContent = text;
}

// terms fills a list of names and values, and changes only what is new.
function terms(into, rows) {
  const wanted = rows.filter(Boolean), { make } = charts;
  while (into.children.length > wanted.length) into.lastChild.remove();
  wanted.forEach(([name, text, kind], i) => {
    if (!into.children[i]) {
      const div = make('div');
      div.append(make('dt'), make('dd'));
      into.append(div);
    }
    const div = into.children[i], [dt, dd] = div.children;
    if (dt.textContent !== name) dt.textContent = name;
    if (dd.textContent !== text) dd.textContent = text; // the style sheet keeps it in one line
    div.className = kind ?? '';
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

// timesOf is the main time of a frame, with its name.
function timesOf(f) {
  for (const [key, name] of [['response', 'response'], ['end_to_end', 'end to end'], ['service', 'service']]) if (f[key].p99_us !== null) return [key, name, f[key]];
  return null;
}

function numbers() {
  const { run, frames } = feed;
  const sum = {};
  let freezes = 0, frozen = 0;
  for (const f of frames) {
    for (const k in f.counts) sum[k] = (sum[k] ?? 0) + f.counts[k];
    freezes += f.freezes;
    frozen = Math.max(frozen, f.frozen_max_us ?? 0);
  }
  const f = frames.findLast((x) => whole(x, run)), end = frames[frames.length - 1];
  const counts = COUNTS.filter((k) => usual(run, k) || sum[k]);
  terms($('sum'), [
    ['time', format(end?.to ?? 0, 's')],
    ...counts.map((k) => [k, format.whole(sum[k] ?? 0), BAD.has(k) && sum[k] ? 'bad' : '']),
    ['bytes', format(sum.bytes ?? 0, 'bytes')],
  ]);
  if (!f) return [];
  const s = f.to - f.from, main = timesOf(f), least = (p) => (main[2].at_least && p >= main[2].at_least ? '≥ ' : '');
  terms($('now'), [
    ...counts.filter((k) => usual(run, k) || f.counts[k]).map((k) => [k, format(f.counts[k] / s, '/s'), BAD.has(k) && f.counts[k] ? 'bad' : '']),
    ...(main ? [[50, 'p50'], [99, 'p99'], [100, 'max']].map(([p, name]) => [main[1] + ' ' + name, least(p) + format(main[2][name + '_us'], 'measured')]) : []),
    run.reading ? f.lag !== null && ['behind', format.whole(f.lag)] : !run.unanswered && ['in flight', format.whole(f.in_flight)],
    f.send_delay_p99_us !== null && ['send delay p99', format(f.send_delay_p99_us, 'us'), f.send_delay_p99_us > 10e3 ? 'bad' : ''],
    f.freezes > 0 && ['freezes', `${f.freezes}, up to ${format(f.frozen_max_us, 'us')}`, 'bad'],
  ]);
  // The numbers of the band: what the report has, as far as it is known.
  const rateOf = run.reading ? 'consumed' : run.unanswered ? 'sent' : 'acked', rate = f.counts[rateOf] / s;
  const facts = [{ name: rateOf + ' in the last ' + format(run.interval, 's'), value: format(rate, '/s'), note: run.schedule ? 'of ' + format(f.counts.offered / s, '/s') : format(f.counts.bytes / s, 'bytes/s') }];
  if (main) {
    const limit = run.limits?.find((l) => l.time === main[0] && [50, 90, 99, 100].includes(l.percentile));
    const p = limit?.percentile ?? 99, name = p === 100 ? 'max' : 'p' + p, us = main[2][name + '_us'];
    const holds = limit && (limit.upper ? us <= limit.value * 1e6 : us >= limit.value * 1e6);
    facts.push({ name: main[1] + ' ' + name, value: least(p) + format(us, 'measured'), note: limit ? 'limit ' + format(limit.value, 's') : 'max ' + least(100) + format(main[2].max_us, 'measured'), mark: limit && (holds ? 'good' : 'caution') });
  }
  if (!run.reading) {
    const bad = COUNTS.filter((k) => BAD.has(k) && sum[k] && !(k === 'unknown' && run.unanswered)), n = bad.reduce((a, k) => a + sum[k], 0);
    facts.push({ name: 'failures and losses', value: format(n, 'events'), note: n ? bad.map((k) => format.whole(sum[k]) + ' ' + k).join(', ') : 'of ' + format.whole(sum.sent ?? 0) + ' events', mark: n ? 'bad' : 'good' });
  }
  facts.push({ name: 'freezes of this machine', value: String(freezes), note: freezes ? 'up to ' + format(frozen, 'us') : 'the generator keeps up', mark: freezes ? 'caution' : 'good' });
  facts.push(run.reading ? { name: 'behind', value: f.lag === null ? '–' : format(f.lag, 'events') } : { name: 'in flight', value: format(f.in_flight, 'events') });
  return facts;
}

let waiting = false;

function draw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => {
    waiting = false;
    if (!feed?.run) return;
    figures.show(feed.run, feed.frames);
    const facts = numbers();
    page.key($('key'), ...figures.key());
    const f = feed.frames[feed.frames.length - 1];
    if (!done && document.documentElement.dataset.state === 'live') {
      band({ word: 'RUNNING', mark: 'live', text: f ? `${f.phase}, ${format(f.to, 's')}` + (f.left_us > 0 ? `, ${format(f.left_us, 'us')} left` : '') : 'begins', facts });
    }
    document.documentElement.dataset.frames = String(feed.frames.length);
  });
}

// show shows the end of a run: the band of its report.
function show(d) {
  done = d;
  document.documentElement.dataset.state = 'done';
  if (d.error || !d.band?.word) state('done', d.error ?? d.headline ?? 'ended without a report', 'ENDED');
  else band(d.band);
  $('report').hidden = !d.report;
  if (d.report) $('report').querySelector('code').textContent = `carronade report open ${d.report}`;
  const all = $('verdicts'), { make } = charts;
  all.hidden = !d.verdicts?.length;
  all.querySelector('p').textContent = format.unbroken(d.headline ?? '');
  all.querySelector('ul').replaceChildren(...(d.verdicts ?? []).map((v) => {
    const li = make('li', { class: v.mark });
    li.append(make('b', {}, v.label), ' ' + format.unbroken(v.text));
    return li;
  }));
  team.ended();
  draw();
}

async function choose(id) {
  feed?.close();
  done = undefined;
  $('report').hidden = $('verdicts').hidden = true;
  state('wait', 'connecting');
  const mine = new Feed(id, {
    frames: () => mine === feed && draw(),
    done: (d) => mine === feed && show(d),
    next: (next) => { if (mine === feed) again(next); },
    state: (kind) => mine === feed && connection(kind),
  });
  feed = mine;
  figures.rebuild();
  await feed.open();
  const { run } = feed;
  const title = `${run.op} ${run.target}`, serves = !$('team').hidden;
  $(serves ? 'which-run' : 'title').textContent = title;
  document.title = title + ' - Carronade';
  const started = new Date(run.started_at);
  const about = [run.title, 'report ' + id, !Number.isNaN(started.valueOf()) && 'started ' + started.toLocaleTimeString(),
    ...Object.entries(run.labels ?? {}).map(([k, v]) => `${k}=${v}`), ...(run.limits ?? []).map((l) => l.text.replaceAll(' ', '\u00a0'))].filter(Boolean).map(format.unbroken).join(' · '); // a limit stays in one line
  if (!serves) $('about').textContent = about;
  $('last').textContent = run.interval > 1 ? 'Last ' + format(run.interval, 's') : 'Last second';
  $('runs').value = id;
}

function connection(kind) {
  if (done) return;
  if (kind === 'live') { document.documentElement.dataset.state = 'live'; draw(); }
  if (kind === 'lost') state('lost', 'the connection was lost; trying again', 'NO CONNECTION');
  if (kind === 'end') state('end', 'the program has ended', 'ENDED');
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

const GONE = 'The program does not answer. It may have ended.';

async function start() {
  page.colors($('options'), () => figures.group.repaint());
  try {
    await session();
    const serves = await team.start();
    for (;;) {
      await again();
      if (pinned ? known.some((r) => r.id === pinned) : known.length > 0) break;
      state('wait', serves ? 'no run is in progress' : 'waiting for a run', 'NO RUN');
      await new Promise((r) => setTimeout(r, 500));
    }
    await choose(pinned ?? known[known.length - 1].id);
  } catch (e) {
    if (e instanceof Refused && e.status === 401) state('refused', 'This page needs its token: open the address that carronade printed.', 'REFUSED');
    else {
      console.error(e);
      state('lost', GONE, 'NO CONNECTION');
    }
  }
  document.documentElement.dataset.ready = '';
}

$('runs').addEventListener('change', (e) => {
  follow = e.target.value === known[known.length - 1].id;
  choose(e.target.value).catch(() => state('lost', GONE, 'NO CONNECTION'));
});
for (const b of document.querySelectorAll('[data-window]')) {
  b.addEventListener('click', () => {
    for (const o of document.querySelectorAll('[data-window]')) o.setAttribute('aria-pressed', String(o === b));
    figures.setWindow(Number(b.dataset.window));
  });
}
start();
