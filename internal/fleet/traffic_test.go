package fleet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"carronade/internal/run"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// most is what the messages of an agent may take, in bytes a second, both directions together.
const most = 20 << 10

// A wire carries the messages of one agent in virtual time, and counts their bytes.
type wire struct {
	now   time.Duration
	c     *coordinator
	a     *agentProtocol
	bytes int
	start time.Duration // of the run; 0 before
	over  bool
}

// pass delivers what both sides have to say, at once.
func (w *wire) pass(t *testing.T) {
	t.Helper()
	for again := true; again; {
		again = false
		send, events := w.c.Take()
		for _, m := range send {
			again = true
			w.a.Receive(w.now, w.through(t, m.Message))
		}
		for _, e := range events {
			switch e := e.(type) {
			case agentFailed:
				t.Fatal(e.Err)
			case runFinished:
				w.over = true
			}
		}
		answers, do := w.a.Take()
		for _, m := range answers {
			again = true
			w.c.Receive(w.now, "a", w.through(t, m))
		}
		for _, c := range do {
			switch c.Do {
			case orderOpen:
				again = true
				w.a.Opened(w.now, nil)
			case orderStart:
				w.start = c.At
			case orderStop, orderAbort:
				t.Fatalf("an order to %s: %s", c.Do, c.Reason)
			}
		}
	}
}

func (w *wire) through(t *testing.T, m *message) *message {
	t.Helper()
	data := m.Encode()
	w.bytes += len(data)
	got := assert.Value(decodeMessage(data))(t)
	return got
}

// to passes time until a moment.
func (w *wire) to(t *testing.T, at time.Duration) {
	t.Helper()
	for w.pass(t); w.now < at; w.pass(t) {
		w.now = max(w.now+1, min(at, w.c.Next(), w.a.Next()))
		w.c.Tick(w.now)
		w.a.Tick(w.now)
	}
}

// A traffic is made-up load: events of 4 partitions at a rate, in batches.
type traffic struct {
	random  *rand.Rand
	records *run.Records // nil: nothing is verified
	reads   bool
	index   [4]uint64
	place   [4]int64
	last    load.Arrival
}

// The load of the traffic that docs/md has: events and batches a second.
const trafficRate, trafficBatches = 10_000, 380

// about is a time like those of answers: around a median, with a tail.
func (f *traffic) about(median time.Duration) time.Duration {
	return time.Duration(float64(median) * math.Exp(f.random.NormFloat64()/2))
}

// second makes the interval of one second, and its records.
func (f *traffic) second(k int) *load.Snapshot {
	set := measure.Set{Response: measure.NewHistogram(), Service: measure.NewHistogram(), SendDelay: measure.NewHistogram(), Batching: measure.NewHistogram(), Queueing: measure.NewHistogram(), FailedService: measure.NewHistogram(), Censored: measure.NewHistogram()}
	const events = trafficRate / trafficBatches
	batches := trafficBatches
	if f.reads { // what two agents send
		batches *= 2
	}
	for b := range batches {
		log := b % 4
		at := time.Duration(k)*time.Second + time.Duration(b)*time.Second/time.Duration(batches)
		service := f.about(2 * time.Millisecond)
		o := load.Outcome{Acked: events, Place: f.place[log], Sum: f.random.Uint32()}
		o.Stream, o.First, o.Events, o.FirstSent = int32(log), f.index[log], events, -1
		o.DueFirst = dueAt(int32(log), f.index[log])
		o.DueLast = dueAt(int32(log), f.index[log]+events-1)
		o.Ready = at + f.about(50*time.Microsecond)
		o.Free = o.Ready
		o.Sent = o.Ready + f.about(60*time.Microsecond)
		o.Done = o.Sent + service
		if f.reads {
			a := load.Arrival{
				Log: int32(log), Base: o.Place, Events: events, Sum: o.Sum, At: o.Done, Earliest: o.Done - f.about(30*time.Microsecond),
				Requested: o.Done - f.about(2*time.Millisecond), Waited: f.about(time.Millisecond),
			}
			if b%2 == 1 { // it came with the answer that the batch before came with
				a.At, a.Earliest, a.Requested, a.Waited = f.last.At, f.last.Earliest, f.last.Requested, f.last.Waited
			}
			f.last = a
			f.records.Arrived(0, []load.Arrival{a})
		} else {
			if f.records != nil {
				f.records.Fired([]load.Outcome{o})
			}
			set.Service.Record(service)
			set.Queueing.Record(0)
			for range events {
				set.Response.Record(service + f.about(3*time.Millisecond))
				set.SendDelay.Record(o.Sent - o.Ready)
				set.Batching.Record(f.about(3 * time.Millisecond))
			}
		}
		f.index[log] += events
		f.place[log] += events
	}
	row := measure.Interval{Phase: measure.Measurement, Start: time.Duration(k) * time.Second, End: time.Duration(k+1) * time.Second, Set: set, InFlight: 31, LagEvents: -1}
	row.Counts = measure.Counts{Offered: 9998, Sent: 9997, Acked: 9980, Batches: 380, Answered: 379, Bytes: 1_000_123, AckedBytes: 999_123, WireBytes: 1_050_321}
	row.Generator = measure.Usage{CPU: 31 * time.Millisecond, RSS: 61 << 20, MaxRSS: 62 << 20, GCPauses: 1, GCPauseMax: 41 * time.Microsecond, GCCPU: time.Millisecond}
	if f.reads {
		row.Set, row.Counts = measure.Set{}, measure.Counts{Consumed: 9990, Bytes: 1_000_123, WireBytes: 1_050_321}
	}
	total := row.Counts
	for range k {
		total.Add(row.Counts)
	}
	return &load.Snapshot{At: row.End, Phase: measure.Measurement, Left: time.Hour, Rows: []measure.Interval{row}, Total: total}
}

// dueAt is the schedule: events of four partitions in turn.
func dueAt(stream int32, index uint64) time.Duration {
	return time.Duration(index*4+uint64(stream)) * time.Second / trafficRate
}

// TestTraffic: the messages of an agent stay within what a slow network carries, also if it has records of what it sends or
// reads. Time is virtual and the load made up, so the bytes are always the same.
func TestTraffic(t *testing.T) {
	for _, c := range []struct {
		name            string
		recorded, reads bool
	}{{"sends", false, false}, {"sends, verified", true, false}, {"reads", true, true}} {
		t.Run(c.name, func(t *testing.T) {
			const seconds = 30
			f := &traffic{random: rand.New(rand.NewPCG(1, 2)), reads: c.reads}
			if c.recorded {
				f.records = run.NewRecords()
				f.records.Of(func(stream int32) int32 { return stream }, true, dueAt)
			}
			w := &wire{a: newAgentProtocol(Info{Name: "a", Incarnation: "QVN5TQ2BXVZ5U6JGTWTV5CTDHI", Version: "v1.2.3", Layout: measure.Layout, Processors: 8}, NewMemorySpool())}
			w.c = assert.Value(newCoordinator(runConfig{
				Run: "k2j4h5g6", Session: fmt.Sprintf("%x", uint64(1)<<60), Version: "v1.2.3", Layout: measure.Layout, Agents: []string{"a"},
				Plan: []byte("{}"), Shares: map[string][]byte{"a": []byte("{}")},
			}))(t)
			w.c.Tick(0)
			for w.start == 0 {
				w.to(t, w.now+100*time.Millisecond)
			}
			w.to(t, w.start)
			begin, frames, kept := w.bytes, 0, 0
			whole := run.Measured{Result: &load.Result{Mode: load.OpenLoop}, Processors: 8}
			tally := &whole.Result.Measurement
			for k := range seconds {
				w.to(t, w.start+time.Duration(k+1)*time.Second)
				s := f.second(k)
				records := f.records.Take(k, framedRecords)
				for _, r := range records {
					kept += len(r)
				}
				data := assert.Value(packSnapshot(s, records))(t)
				frames += len(data)
				w.a.Frame(w.now, data)
				whole.Result.Intervals = append(whole.Result.Intervals, s.Rows[0])
				tally.Counts.Add(s.Rows[0].Counts)
				tally.Set.Merge(&s.Rows[0].Set)
				tally.Lower.Merge(&measure.Lower{Response: s.Rows[0].Response, Service: s.Rows[0].Service})
			}
			w.to(t, w.now+500*time.Millisecond)
			during := (w.bytes - begin) / seconds
			whole.Records = compress(f.records.Rest())
			data := assert.Value(pack(&whole))(t)
			for w.a.Ended(w.now, data, nil); !w.over; {
				w.to(t, w.now+100*time.Millisecond)
			}
			rate := (w.bytes - begin) / seconds
			t.Logf("%d bytes a second, with the result %d; frames %d, of which records take %d before they are compressed; result %d", during, rate, frames/seconds, kept/seconds, len(data))
			assert.True(t, rate <= most, "%d bytes a second with the result, at most %d", rate, most)
		})
	}
}

func openSpool(t *testing.T, dir string) *FileSpool {
	t.Helper()
	s := assert.Value(OpenSpool(dir))(t)
	return s
}

// TestSpool: both kinds of spools do the same.
func TestSpool(t *testing.T) {
	file := openSpool(t, t.TempDir())
	defer file.Close()
	for _, s := range []Spool{NewMemorySpool(), file} {
		t.Run(fmt.Sprintf("%T", s), func(t *testing.T) {
			_, err := s.Look("b")
			assert.True(t, errors.Is(err, ErrNotSpooled), "a run that is not there: %v", err)
			_, err = s.Append("b", nil)
			assert.True(t, errors.Is(err, ErrNotSpooled), "a record of a run that is not there: %v", err)
			for _, run := range []string{"b", "a"} {
				assert.OK(t, s.Begin(run, []byte("head of "+run)))
			}
			err = s.Begin("b", nil)
			assert.True(t, errors.Is(err, ErrSpooled), "a run that is there: %v", err)
			for i := range 5 {
				n, err := s.Append("b", bytes.Repeat([]byte{byte(i)}, i))
				assert.Must(t, n == uint64(i+1) && err == nil, "%v %v", n, err)
			}
			assert.OK(t, s.End("b", []byte("end")))
			names, err := s.Runs()
			assert.True(t, slices.Equal(names, []string{"a", "b"}) && err == nil, "runs %q, %v", names, err)
			if got, err := s.Look("b"); string(got.Header) != "head of b" || got.Records != 5 || string(got.End) != "end" || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			if got, err := s.Look("a"); string(got.Header) != "head of a" || got.Records != 0 || got.End != nil || err != nil {
				t.Errorf("%+v, %v", got, err)
			}
			for i := range 5 {
				data, err := s.Read("b", uint64(i+1))
				assert.True(t, bytes.Equal(data, bytes.Repeat([]byte{byte(i)}, i)) && err == nil, "record %d is %x, %v", i+1, data, err)
			}
			for _, n := range []uint64{0, 6} {
				_, err := s.Read("b", n)
				assert.True(t, err != nil, "record %d is there", n)
			}
			for range 2 {
				assert.OK(t, s.Remove("b"))
			}
			names, err = s.Runs()
			assert.True(t, slices.Equal(names, []string{"a"}) && err == nil, "runs %q, %v", names, err)
		})
	}
}

// TestSpoolTorn cuts a file at every byte, and changes every byte: what is read is
// always the beginning of what was written, and a file can be cut anywhere.
func TestSpoolTorn(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	assert.OK(t, s.Begin("run", []byte("header")))
	var want [][]byte
	for i := range 4 {
		want = append(want, fmt.Appendf(nil, "record %d", i))
		assert.Value(s.Append("run", want[i]))(t)
	}
	assert.OK(t, s.End("run", []byte("end")))
	s.Close()
	name := filepath.Join(dir, "run", spoolFile)
	whole := assert.Value(os.ReadFile(name))(t)
	try := func(what string, data []byte) {
		t.Helper()
		assert.OK(t, os.WriteFile(name, data, 0o600))
		s := openSpool(t, dir)
		defer s.Close()
		got, err := s.Look("run")
		if errors.Is(err, ErrNotSpooled) {
			assert.True(t, len(data) <= entryHead+len("header") || !bytes.Equal(data[:entryHead+6], whole[:entryHead+6]),
				"%s: nothing is left", what)
			err := s.Begin("run", []byte("again"))
			assert.True(t, err == nil, "%s: it cannot begin again: %v", what, err)
			return
		} else if err != nil {
			t.Errorf("%s: %v", what, err)
			return
		}
		if string(got.Header) != "header" || got.End != nil && (string(got.End) != "end" || got.Records != 4) || got.Records > 4 {
			t.Errorf("%s: %+v", what, got)
		}
		for i := range got.Records {
			data, err := s.Read("run", i+1)
			assert.True(t, bytes.Equal(data, want[i]) && err == nil, "%s: record %d is %q, %v", what, i+1, data, err)
		}
		if got.End == nil { // the next record takes the place of what was torn
			n, err := s.Append("run", []byte("new"))
			s.leave()
			again, err2 := s.Look("run")
			assert.True(t, n == got.Records+1 && again.Records >= n && err == nil && err2 == nil,
				"%s: after %d records, one more is number %d, then %d: %v, %v", what, got.Records, n, again.Records, err, err2)
		}
	}
	for i := range whole {
		try(fmt.Sprintf("cut at %d", i), whole[:i])
		changed := slices.Clone(whole)
		changed[i] ^= 0x40
		try(fmt.Sprintf("byte %d changed", i), changed)
	}
}

func TestSpoolLocked(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	if other, err := OpenSpool(dir); err == nil {
		other.Close()
		t.Error("two processes can use one spool")
	}
	s.Close()
	openSpool(t, dir).Close()
	for _, run := range []string{"", "..", "../x", ".lock", "a/b"} {
		s := openSpool(t, dir)
		assert.True(t, s.Begin(run, nil) != nil, "a run %q began", run)
		assert.True(t, s.Remove(run) != nil, "a run %q was removed", run)
		s.Close()
	}
}

func FuzzSpool(f *testing.F) {
	f.Add([]byte("\x01\x00\x00\x00\x00\x00\x00\x00hx"))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		assert.OK(t, os.Mkdir(filepath.Join(dir, "run"), 0o700))
		assert.OK(t, os.WriteFile(filepath.Join(dir, "run", spoolFile), data, 0o600))
		s := openSpool(t, dir)
		defer s.Close()
		got, err := s.Look("run")
		if err != nil {
			return
		}
		for i := range got.Records {
			assert.Value(s.Read("run", i+1))(t)
		}
	})
}

// TestRemoveOlder: results that were not fetched for long are deleted, and no others.
func TestRemoveOlder(t *testing.T) {
	dir := t.TempDir()
	s := openSpool(t, dir)
	defer s.Close()
	for _, run := range []string{"a", "b", "c"} {
		assert.OK(t, s.Begin(run, []byte("head")))
	}
	now := time.Now()
	for _, run := range []string{"a", "c"} {
		assert.OK(t, os.Chtimes(filepath.Join(dir, run, spoolFile), now, now.Add(-2*time.Hour)))
	}
	removed, err := s.RemoveOlder(now.Add(-time.Hour))
	assert.True(t, err == nil && slices.Equal(removed, []string{"a", "c"}), "removed %q, %v", removed, err)
	left, err := s.Runs()
	assert.True(t, err == nil && slices.Equal(left, []string{"b"}), "left %q, %v", left, err)
}
