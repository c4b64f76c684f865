// The queue and the stored reports of a server that several people use. A single run has neither,
// and then the page shows neither.

import { Refused } from './feed.js';

const $ = (id) => document.getElementById(id);
const EVERY = 2000; // ms between two looks at the queue
const API = '/api/v1';

async function get(path) {
  const answer = await fetch(API + path, { cache: 'no-store' });
  if (!answer.ok) throw new Refused(answer.status);
  return answer.json();
}

// name gives the cells of rows the names of their columns, for narrow screens.
function name(table) {
  const names = [...table.tHead.rows[0].cells].map((c) => (c.querySelector('.screen-reader') ? '' : c.textContent));
  for (const row of table.tBodies[0].rows) [...row.cells].forEach((c, i) => { if (names[i]) c.dataset.of = names[i]; });
}

// cell is a cell of a table; more stands below its text.
function cell(text, cls, more) {
  const td = charts.make('td', cls ? { class: cls } : {}, text);
  if (more) td.append(charts.make('span', { class: 'more' }, more));
  return td;
}

const SIGNS = { queued: '…', running: '●', done: '✓', failed: '✗', cancelled: '–', interrupted: '!' };

let user = '';

async function cancel(job) {
  const answer = await fetch(`${API}/jobs/${job.id}/cancel`, { method: 'POST' });
  if (!answer.ok) $('said').textContent = (await answer.json()).error;
  await queue();
}

// what says why a job ended, if it did not end well, and whether it may do more than others.
function what(job) {
  const end = job.reason || (job.exit ? `exit code ${job.exit}` : '');
  const wider = job.walls === 'rules and system' ? '' : `walls: ${job.walls}`;
  return [end, wider].filter(Boolean).join('; ');
}

let shown = '';

async function queue() {
  const [open, ended] = await Promise.all([get('/jobs?state=queued&state=running&n=100'), get('/jobs?state=done&state=failed&state=cancelled&state=interrupted&n=20')]);
  const jobs = [...open.jobs, ...ended.jobs];
  const text = JSON.stringify(jobs);
  if (text === shown) return; // a rebuilt table would lose the keyboard's place
  shown = text;
  $('queue').tBodies[0].replaceChildren(...jobs.map((job) => {
    const row = document.createElement('tr');
    const act = document.createElement('td');
    if (job.user === user && (job.state === 'queued' || job.state === 'running')) {
      act.append(page.button(`Cancel job ${job.id}`, () => cancel(job).catch(() => {})));
    } else if (job.state !== 'queued') {
      const a = document.createElement('a');
      a.href = `${API}/jobs/${job.id}/output`;
      a.textContent = `Output of job ${job.id}`;
      act.append(a);
    }
    row.append(cell(job.id), cell(`${SIGNS[job.state] ?? ''} ${job.state}`, job.state), cell(job.typed, 'line', ['by ' + job.user, what(job)].filter(Boolean).join(', ')), act);
    return row;
  }));
  name($('queue'));
  $('queue').hidden = jobs.length === 0;
  $('idle').hidden = jobs.length > 0;
}

const COLUMNS = 'target,op,throughput,response_p99,service_p99,limits,exit,trust_level,branch';
// The answer of a report in a word, and its color, by its exit code.
const ANSWERS = { 0: ['DONE', 'good'], 1: ['FAIL', 'bad'], 2: ['FAIL', 'bad'], 3: ['NOT TRUSTED', 'bad'], 4: ['CANNOT TELL', 'open'], 130: ['INTERRUPTED', 'caution'] };

// answer is the cell with the answer of a report.
function answer({ running, fields: f = {} }) {
  const [word, mark] = running ? ['RUNNING', 'live'] : f.exit === 0 && f.limits ? ['PASS', 'good'] : ANSWERS[f.exit] ?? ['', ''];
  const td = cell('', '', !running && f.trust_level !== 'trusted' && f.exit !== 3 ? f.trust_level : '');
  if (word) td.prepend(charts.make('b', { class: 'said ' + mark }, word));
  return td;
}

const chosen = new Set();

function open(ids) {
  const [first, ...rest] = ids;
  const query = rest.map((id) => 'with=' + encodeURIComponent(id)).join('&');
  window.open(`${API}/reports/${encodeURIComponent(first)}/page${query ? '?' + query : ''}`, '_blank', 'noopener');
}

function compare() {
  $('overlay').disabled = chosen.size < 2;
  $('overlay').textContent = chosen.size < 2 ? 'Choose reports to compare' : `Compare ${chosen.size} reports`;
}

async function reports() {
  const filters = $('filter').value.trim().split(/\s+/).filter(Boolean).map((f) => '&filter=' + encodeURIComponent(f)).join('');
  const note = $('found');
  let found;
  try {
    const answer = await fetch(`${API}/reports?n=50&columns=${COLUMNS}${filters}`, { cache: 'no-store' });
    const body = await answer.json();
    if (!answer.ok) {
      note.textContent = [body.error, body.hint].filter(Boolean).join(' - ');
      return;
    }
    found = body.reports ?? [];
  } catch {
    note.textContent = 'The server does not answer.';
    return;
  }
  note.textContent = found.length === 0 ? 'No report fits.' : '';
  for (const id of chosen) if (!found.some((r) => r.id === id)) chosen.delete(id);
  $('reports').tBodies[0].replaceChildren(...found.map((r) => {
    const row = document.createElement('tr');
    const f = r.fields ?? {};
    const box = document.createElement('input');
    box.type = 'checkbox';
    box.checked = chosen.has(r.id);
    box.setAttribute('aria-label', `Choose report ${r.id}`);
    box.addEventListener('change', () => {
      if (box.checked) chosen.add(r.id); else chosen.delete(r.id);
      compare();
    });
    const pick = document.createElement('td');
    pick.append(box);
    const id = document.createElement('td');
    const a = document.createElement('a');
    a.href = `${API}/reports/${encodeURIComponent(r.id)}/page`;
    a.target = '_blank';
    a.rel = 'noopener';
    a.textContent = r.id;
    id.append(a);
    const p99 = f.response_p99 ?? f.service_p99;
    row.append(pick, id, cell(new Date(r.started_at).toLocaleString(undefined, { dateStyle: 'short', timeStyle: 'short' })), cell([f.op, f.target].filter(Boolean).join(' '), 'line', f.branch),
      cell(f.throughput === undefined ? '' : format(f.throughput, '/s')), cell(p99 === undefined ? '' : format(p99 * 1e6, 'measured'), '', p99 !== undefined && f.response_p99 === undefined ? 'service' : ''),
      answer(r));
    return row;
  }));
  name($('reports'));
  compare();
}

// start shows the queue and the reports if this is a server that has them.
export async function start() {
  const answer = await fetch(API + '/status', { cache: 'no-store' });
  if (answer.status === 204) return false;
  if (!answer.ok) throw new Refused(answer.status);
  ({ user } = await answer.json());
  $('team').hidden = $('which-run').hidden = false;
  $('title').textContent = 'Carronade for a team';
  $('about').textContent = location.host;
  $('find').addEventListener('submit', (e) => { e.preventDefault(); reports(); });
  $('overlay').addEventListener('click', () => open([...chosen]));
  const look = async () => {
    if (!document.hidden) await queue().catch(() => {});
    setTimeout(look, EVERY);
  };
  look(); // neither delays the run in progress
  reports();
  return true;
}

// ended is called when a run ended: its report is new.
export function ended() {
  if (!$('team').hidden) reports();
}
