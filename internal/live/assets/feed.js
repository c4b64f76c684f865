// The frames of a run: all so far, and each new one as it comes.

const POLL = 2000; // ms between requests when no stream can be had
const MOST = 12000; // frames; a server keeps fewer

// The token comes in the fragment of the address, which browsers do not send. It is
// exchanged once for a cookie that scripts cannot read, and removed from the address.
export async function session() {
  const token = new URLSearchParams(location.hash.slice(1)).get('token');
  if (!token) return;
  history.replaceState(null, '', location.pathname + location.search);
  const answer = await fetch('/api/session', {
    method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ token }),
  });
  if (!answer.ok) throw new Refused(answer.status);
}

export class Refused extends Error {
  constructor(status) { super('refused with ' + status); this.status = status; }
}

async function get(path) {
  const answer = await fetch('/api' + path, { cache: 'no-store' });
  if (!answer.ok) throw new Refused(answer.status);
  return answer.json();
}

export const runs = () => get('/runs');

// A Feed has the frames of one run in order of time. It calls on.frames after each change,
// on.done at the end of the run, on.next when another run began, and on.state with
// "live", "lost" or "end".
export class Feed {
  constructor(id, on) {
    this.id = id;
    this.on = on;
    this.frames = [];
    this.path = '/runs/' + encodeURIComponent(id);
    this.closed = false;
    this.visible = () => (document.hidden ? this.pause() : this.resume());
    document.addEventListener('visibilitychange', this.visible);
  }

  async open() {
    await this.load(0);
    if (!document.hidden) this.resume();
  }

  last() { return this.frames.length ? this.frames[this.frames.length - 1].n : 0; }

  // load reads what came after a frame.
  async load(after) {
    const all = await get(`${this.path}/series?from=${after + 1}`);
    if (this.closed) return;
    this.run = all.run;
    if (after === 0) this.frames = [];
    for (const f of all.frames) this.add(f);
    this.on.frames();
    if (all.done) this.on.done(all.done);
  }

  // add appends a frame. A merged one replaces those that it covers.
  add(f) {
    while (this.last() > f.n - f.span) this.frames.pop();
    this.frames.push(f);
  }

  // A hidden page has no stream: a browser opens only six connections to a server, over
  // all tabs.
  pause() {
    this.stream?.close();
    this.stream = undefined;
    clearTimeout(this.timer);
  }

  resume() {
    if (this.closed || this.ended || this.stream) return;
    const s = new EventSource(`/api${this.path}/events?from=${this.last() + 1}`);
    this.stream = s;
    s.addEventListener('open', () => this.on.state('live'));
    s.addEventListener('frame', (e) => this.take(JSON.parse(e.data)));
    s.addEventListener('done', (e) => this.on.done(JSON.parse(e.data)));
    s.addEventListener('next', (e) => this.on.next(JSON.parse(e.data)));
    s.addEventListener('end', () => { this.ended = true; this.pause(); this.on.state('end'); });
    s.addEventListener('error', () => {
      if (s !== this.stream) return;
      this.on.state('lost');
      if (s.readyState === EventSource.CLOSED) { this.stream = undefined; this.poll(); }
    });
  }

  async take(f) {
    if (f.n <= this.last()) return;
    // After a merged or more than one missing frame the others are read at once.
    if (this.frames.length && f.n - f.span > this.last()) {
      try { await this.load(this.last()); } catch { /* a gap remains */ }
      if (f.n <= this.last()) return;
    }
    this.add(f);
    // A long run is read again from time to time: the server has merged its older frames.
    if (this.frames.length > MOST && !this.again) {
      this.again = true;
      this.load(0).catch(() => {}).finally(() => { this.again = false; });
    }
    this.on.frames();
  }

  // poll reads without a stream: the server has too many viewers, or it ended.
  poll() {
    this.timer = setTimeout(async () => {
      if (this.closed || this.ended) return;
      try {
        await this.load(this.last());
        this.on.state('live');
      } catch { /* tried again */ }
      this.poll();
    }, POLL);
  }

  close() {
    this.closed = true;
    this.pause();
    document.removeEventListener('visibilitychange', this.visible);
  }
}
