package mongoose

import (
	"bufio"
	"context"
	"maps"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/units"
)

// maxPerRequest limits the topics of a request if no option does: brokers need time
// for each.
const maxPerRequest = 1000

// maxSeen limits the names that are remembered in order to avoid duplicates.
const maxSeen = 1 << 20

// unique returns a function that makes names without duplicates as long as
// possible. mongoose's names repeat if they are short.
func (n *namer) unique() func() string {
	seen := make(map[string]struct{})
	return func() string {
		name, id := n.next()
		for range 1 << 16 {
			if _, again := seen[name]; !again {
				break
			}
			id = (id + 1) % n.wrap
			name = n.name(n.made-1, id)
		}
		if len(seen) < maxSeen {
			seen[name] = struct{}{}
		}
		return name
	}
}

// topicLoad translates a step on topics to a load.
func (s *step) topicLoad(names *namer) dropin.TopicLoad {
	l := dropin.TopicLoad{
		Op: s.topicOp, Names: s.items, For: s.timeLimit, Failures: s.maxFailed,
		PerRequest: 1, Concurrency: s.concurrency, Rate: s.rate,
	}
	l.Spec.Partitions, l.Spec.Replicas = 1, 1
	count := int(min(s.count, math.MaxInt))
	switch {
	case s.topicOp == "create" && len(s.items) == 0:
		l.Next = names.unique()
		l.Times = count
		if count == 0 {
			l.Times = -1
		}
	case s.topicOp == "list" || s.topicOp == "read" && s.recycle:
		l.Times = count
		if count == 0 && (s.timeLimit > 0 || s.topicOp == "read") {
			l.Times = -1
		}
	case count > 0:
		l.Names = s.items[:min(count, len(s.items))]
	}
	if s.topicOp == "list" {
		l.Names = nil
	}
	if l.Concurrency == 0 {
		l.Concurrency = 100
	}
	if s.rate == 0 && (s.topicOp == "create" || s.topicOp == "delete") {
		l.PerRequest = int(min(s.batch, maxPerRequest))
		if s.concurrency > 0 {
			l.PerRequest = min(l.PerRequest, s.concurrency)
		}
		l.Concurrency = max(1, s.concurrency/l.PerRequest)
	}
	return l
}

// A topicMeter counts operations on topics.
type topicMeter struct {
	mu sync.Mutex // during the load, held by done and sample
	*meter
	succ, fail, bytes    uint64        // since the last tick
	inFlight, perRequest int           // requests in flight, and operations per request
	trace                *bufio.Writer // nil: none
	items                *bufio.Writer // nil: none
	began                time.Time     // zero point of all times; not set before the start
	line                 []byte
	err                  error // the first error
	writers              writers
	failures             map[string]*failedTopics // by the failure's text
	watched              *measuredStep
}

// failedTopics are topics that failed for one reason.
type failedTopics struct {
	n     int
	first string // its name
}

// maxFailures limits the texts that are kept.
const maxFailures = 10

// done counts an operation.
func (t *topicMeter) done(d dropin.TopicDone) {
	start := d.Due
	if d.Class == "" {
		t.succ++
		t.bytes += d.Bytes
		t.duration.Record(d.At - start)
		t.latency.Record(d.At - d.Sent)
	} else {
		t.fail++
		text := d.Class + ": " + d.Err.Error()
		if t.failures[text] == nil && len(t.failures) < maxFailures {
			t.failures[text] = &failedTopics{first: d.Name}
		}
		if f := t.failures[text]; f != nil {
			f.n++
		}
	}
	t.inFlight = d.InFlight - 1
	if t.trace != nil {
		o := operation{
			path: d.Name, op: opCodes[t.s.op], status: statusSucc, start: t.began.Add(start).UnixMicro(),
			duration: (d.At - start).Microseconds(), latency: (d.At - d.Sent).Microseconds(), size: -1,
		}
		if len(t.s.brokers) == 1 {
			o.node = t.s.brokers[0]
		}
		if d.Class != "" {
			if o.status = statusCodes[d.Class]; o.status == 0 {
				o.status = statusUnknown
			}
		}
		t.line = o.append(t.line[:0])
		_, err := t.trace.Write(t.line)
		t.keepError(err)
	}
	if t.items != nil && d.Class == "" && d.Name != "" {
		_, err := t.items.WriteString(d.Name + "\n")
		t.keepError(err)
	}
}

// keepError records the first error. (A full disk causes one for every operation.)
func (t *topicMeter) keepError(err error) {
	if t.err == nil {
		t.err = err
	}
}

// tick adds the counts of the span of time that ends at at.
func (t *topicMeter) tick(at time.Duration) {
	t.count(t.succ, t.fail, t.bytes, at-t.at, uint64(max(t.inFlight*t.perRequest, 0)))
	t.succ, t.fail, t.bytes = 0, 0, 0
	t.at = at
}

// close flushes and closes the files.
func (t *topicMeter) close() {
	t.keepError(t.writers.close())
	t.trace, t.items = nil, nil
}

// topics runs a step on topics and returns the exit code.
func (s *step) topics(ctx context.Context, p *dropin.Program, f *files, t *table, names *namer) (int, error) {
	m := &topicMeter{meter: newMeter(s), failures: make(map[string]*failedTopics), watched: apiOf(ctx).watch(s)}
	defer m.watched.end()
	defer m.close()
	if m.open(s, f); m.err != nil {
		return host.ExitFailed, m.err
	}
	load := s.topicLoad(names)
	m.perRequest = load.PerRequest
	load.Each = func(d dropin.TopicDone) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.done(d)
	}
	started, ended, sampled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	load.Started = func(at time.Time) {
		m.began = at
		close(started)
	}
	go func() {
		defer close(sampled)
		select {
		case <-ended:
		case <-started:
			m.sample(ended, t, f)
		}
	}()
	var d dropin.Draft
	d.Setf("target", "--storage-net-node-addrs", "kafka://%s", strings.Join(s.brokers, ","))
	s.connections(&d)
	s.labels(&d)
	r, err := p.Topics(ctx, &d.Document, load)
	close(ended)
	<-sampled
	switch {
	case r == nil && ctx.Err() != nil:
		return host.ExitInterrupted, nil
	case err != nil:
		return host.ExitFailed, err
	}
	return s.endTopics(p, f, t, m, r), nil
}

// open opens the files that the step asks for.
func (t *topicMeter) open(s *step, f *files) {
	var err error
	if s.trace {
		t.trace, err = t.writers.open(f.path("op.trace.csv"), os.O_APPEND)
		t.keepError(err)
	}
	if list := s.v.text("item-output-file"); list != "" {
		t.items, err = t.writers.open(list, os.O_TRUNC)
		t.keepError(err)
	}
}

// sample writes rows of the table and of the file when they are due, until the load
// has ended.
func (t *topicMeter) sample(ended <-chan struct{}, rows *table, f *files) {
	second := time.NewTicker(time.Second)
	defer second.Stop()
	for {
		select {
		case <-ended:
			return
		case <-second.C:
		}
		t.mu.Lock()
		t.tick(time.Since(t.began))
		t.watched.look(t.meter)
		t.meter.rows(rows, f)
		t.mu.Unlock()
	}
}

// endTopics writes the results of a load that has ended, and returns the exit code.
func (s *step) endTopics(p *dropin.Program, f *files, t *table, m *topicMeter, r *dropin.TopicResult) int {
	m.tick(max(r.Elapsed, m.at))
	if m.items != nil && s.topicOp == "list" {
		for _, found := range r.Topics { // of the last listing
			_, err := m.items.WriteString(found.Name + "\n")
			m.keepError(err)
		}
	}
	m.close()
	f.keepError(m.err)
	last := m.metrics(time.Now())
	if last.elapsed > 0 { // mean topics in flight: the sum of their times divided by the elapsed time
		last.mean = m.latency.Sum() / float64(last.elapsed)
	}
	m.watched.show(last)
	failed := r.Failed + r.Unknown // mongoose has a single count for both
	if s.maxFailed > 0 && failed > s.maxFailed {
		s.printFailureLimit(p.Out, failed)
	}
	s.end(p, f, t, last)
	for _, text := range slices.Sorted(maps.Keys(m.failures)) {
		of := m.failures[text]
		what := units.Plural(of.n, "topic") + " failed"
		if of.first != "" {
			what += " (the first is " + of.first + ")"
		}
		warner(p)("%s: %s", what, text)
	}
	switch {
	case r.Interrupted:
		return host.ExitInterrupted
	case s.strict || failed == 0:
		return host.ExitOK
	}
	return host.ExitBroken
}
