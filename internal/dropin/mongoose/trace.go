package mongoose

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/run/trace"
	"carronade/measure"
	"carronade/payload"
)

// Codes of operations and outcomes in op.trace.csv. Codes of failures are by the
// report's class.
var opCodes = map[string]int{"NOOP": 0, "CREATE": 1, "READ": 2, "UPDATE": 3, "DELETE": 4, "LIST": 5}

const (
	statusUnknown = 3
	statusSucc    = 4
)

var statusCodes = map[string]int{
	"timeout": 6, "refused": 5, "disconnected": 5, "throttled": 10, "rejected": 10, "protocol": 8, "canceled": 2, "too-large": 9, "unauthorized": 12,
}

// An operation is a row of op.trace.csv. Times are in microseconds; those not above
// 0 are omitted.
type operation struct {
	node, path        string
	op, status        int
	start             int64 // since the epoch
	duration, latency int64
	size              int64 // -1: none
}

func (o *operation) append(b []byte) []byte {
	number := func(n int64, shown bool) {
		if shown {
			b = strconv.AppendInt(b, n, 10)
		}
		b = append(b, ',')
	}
	b = append(append(b, o.node...), ',')
	b = append(append(b, o.path...), ',')
	number(int64(o.op), true)
	number(int64(o.status), true)
	number(o.start, o.start > 0)
	number(o.duration, o.duration > 0)
	number(o.latency, o.latency > 0 && o.latency <= o.duration)
	b = append(b, ',') // the time to the first byte of data is empty: nothing was read
	if o.size >= 0 {
		b = strconv.AppendInt(b, o.size, 10)
	}
	return append(b, '\n')
}

// A translation converts the rows of single records, as they come, to mongoose's trace, its
// list of acknowledged records and, with --strict, its times.
type translation struct {
	s     *step
	f     *files
	names *namer
	w     writers
	err   error              // the first one
	sizes *payload.Generator // nil if all records have the same size
	trace *bufio.Writer      // nil: none
	items *listWriter        // nil: none
	e2e   *bufio.Writer      // nil: none
	line  []byte

	duration, latency *measure.Histogram // of the operations whose times mongoose counts

	read *reads // of a pipeline; nil: records are not read
}

// reads are the operations of a pipeline that read what was created.
type reads struct {
	s            *step
	mu           sync.Mutex // of latency: rows of the table are made at the same time
	count, bytes uint64
	latency      *measure.Histogram
}

// read adds the read of a record that was created, and returns its operation.
func (r *reads) read(began time.Time, row *trace.Row, created *operation) operation {
	o := *created
	o.op, o.start = opCodes[r.s.op], began.UnixMicro()+row.Requested.Microseconds()
	o.duration = (row.Consumed - row.Requested).Microseconds()
	o.latency = o.duration
	r.count++
	r.bytes += uint64(max(o.size, 0))
	r.mu.Lock()
	r.latency.Record(time.Duration(max(o.duration, 0)) * time.Microsecond)
	r.mu.Unlock()
	return o
}

// times sets the times until now.
func (r *reads) times(m *metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	m.latency = r.s.timingOf(r.latency)
	m.duration = m.latency
}

// timed reports whether mongoose includes an operation's times in its means: if the
// latency is not 0 and the duration is longer. Without a schedule the two are equal
// here, and only the first condition applies.
func (o *operation) timed(scheduled bool) bool {
	return o.status == statusSucc && o.latency > 0 && (o.duration > o.latency || !scheduled)
}

// row converts a row.
func (t *translation) row(began time.Time, r *trace.Row) error {
	sent := r.Done
	if r.Sent >= 0 {
		sent = r.Sent
	}
	start, scheduled := sent, r.Due >= 0
	if scheduled {
		start = r.Due
	}
	o := operation{
		op: opCodes[t.s.op], status: statusSucc, start: began.UnixMicro() + start.Microseconds(),
		duration: (r.Done - start).Microseconds(), latency: (r.Done - sent).Microseconds(), size: t.s.low,
	}
	if len(t.s.brokers) == 1 {
		o.node = t.s.brokers[0]
	}
	if r.Acked == 0 {
		o.status, o.size = statusUnknown, 0
		if code := statusCodes[r.Class.String()]; code > 0 {
			o.status = code
		}
	}
	done := o.status == statusSucc
	if done && t.sizes != nil {
		o.size = int64(t.sizes.Size(t.names.items.Event(r.Stream, r.Event)))
	}
	if o.timed(scheduled) {
		t.duration.Record(time.Duration(o.duration) * time.Microsecond)
		t.latency.Record(time.Duration(o.latency) * time.Microsecond)
	}
	var id int64
	if t.trace != nil || t.items != nil {
		t.line = append(append(t.line[:0], t.s.topic...), '/')
		place := len(t.line)
		t.line, id = t.names.appendOf(t.line, r.Stream, r.Event)
		if r.Key != nil {
			t.line = append(t.line[:place], r.Key...)
		}
		o.path = string(t.line)
	}
	if err := t.write(&o); err != nil {
		return err
	}
	if t.read != nil {
		if done = done && r.Requested >= 0 && r.Consumed >= 0; done {
			back := t.read.read(began, r, &o)
			if err := t.write(&back); err != nil {
				return err
			}
			if t.e2e != nil {
				acked := o.start + o.duration
				if _, err := fmt.Fprintf(t.e2e, "%s,%d,%d\n", o.path, o.start-began.UnixMicro(), back.start+back.latency-acked); err != nil {
					return err
				}
			}
		}
	}
	if t.items != nil && done {
		t.line = fmt.Appendf(t.line[:0], "%s,%x,%d,0/0\n", o.path, id, o.size)
		return t.items.add(t.line, r.Partition, r.Offset)
	}
	return nil
}

// write writes an operation to the trace, if there is one.
func (t *translation) write(o *operation) error {
	if t.trace == nil {
		return nil
	}
	t.line = o.append(t.line[:0])
	_, err := t.trace.Write(t.line)
	return err
}

// translation returns a translation of the rows of a run, which o then observes; read is the step
// that reads in a pipeline, else nil.
func (s *step) translation(f *files, names *namer, read *step, o *dropin.Observer) *translation {
	t := &translation{s: s, f: f, names: names, sizes: s.sizes(), duration: measure.NewHistogram(), latency: measure.NewHistogram()}
	if read != nil {
		t.read = &reads{s: read, latency: measure.NewHistogram()}
	}
	o.Found = t.begin
	o.Rows = func(began time.Time, r *trace.Row) {
		if t.err == nil {
			t.err = t.row(began, r)
		}
	}
	return t
}

// begin opens the files when the system has been reached: a run that fails before leaves those of
// an earlier one.
func (t *translation) begin(facts map[string]any) {
	t.names.divided(t.s.streams(facts))
	var traced, endToEnd, listed error
	if t.s.trace {
		t.trace, traced = t.w.open(t.f.path("op.trace.csv"), os.O_APPEND)
	}
	if t.s.trace && t.read != nil {
		t.e2e, endToEnd = t.w.open(t.f.path("e2e.csv"), os.O_APPEND)
	}
	if list := t.s.v.text("item-output-file"); list != "" {
		if t.items, listed = newListWriter(list, t.s.topic); listed == nil {
			t.w = append(t.w, t.items.close)
		}
	}
	t.err = errors.Join(traced, endToEnd, listed)
}

// end closes the files after the run, and returns the first error.
func (t *translation) end() error { return errors.Join(t.err, t.w.close()) }
