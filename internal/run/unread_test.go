package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
	"carronade/units"
)

// A holdingKind is a fakeKind whose system holds back what lies from an offset on, and says why if it is asked.
type holdingKind struct {
	*fakeKind
	from    int64
	blocked string
	lag     []int64 // as the newest answer said
}

func (k *holdingKind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	if _, err := k.fakeKind.Open(ctx, spec); err != nil {
		return nil, err
	}
	return &holdingSession{k.session, k}, nil
}

type holdingSession struct {
	*fakeSession
	k *holdingKind
}

func (s *holdingSession) Source() load.Source {
	return &holdingSource{fakeSource: fakeSource{s.fakeSession}, k: s.k}
}

type holdingSource struct {
	fakeSource
	k  *holdingKind
	at atomic.Int64
}

func (s *holdingSource) Positions() []int64 { return []int64{s.at.Load()} }
func (s *holdingSource) Lag() []int64       { return s.k.lag }

func (s *holdingSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{
		Connected: s.Connected, Seeker: s, Blocked: func(context.Context) (string, error) { return s.k.blocked, nil },
	}
}

func (s *holdingSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	return s.fakeSource.Receive(ctx, now, func(lane int, as []load.Arrival) {
		as = slices.DeleteFunc(as, func(a load.Arrival) bool { return a.Base >= s.k.from })
		for i := range as {
			s.at.Store(as[i].Base + int64(as[i].Events))
		}
		if len(as) > 0 {
			sink(lane, as)
		}
	})
}

func hold(t *testing.T, k protocol.Kind, pairs ...string) *workload.Workload {
	t.Helper()
	var d workload.Document
	for _, p := range append([]string{"target=fake://here", "op=roundtrip", "rate=100/s", "for=10s"}, pairs...) {
		name, v, _ := strings.Cut(p, "=")
		d.Add(name, "--"+name, v)
	}
	w := assert.Value(workload.Resolve([]protocol.Kind{k}, &d, nil))(t)
	return w
}

// TestNeverRead: what was acked and never read counts at its age, in all percentiles that it may change; the
// report begins with it, and a limit on such a percentile does not hold.
func TestNeverRead(t *testing.T) {
	for _, tt := range []struct {
		name   string
		from   int64 // the first offset that is never read
		limit  string
		drain  time.Duration
		unread uint64
		says   string // of the limit
		code   int
	}{
		{"all are read", 1 << 40, "end-to-end.p99<9s", 3 * time.Second, 0, "3 ms", host.ExitOK},
		{"one in five is not, the age is beyond the limit", 800, "end-to-end.p90<100ms", 3 * time.Second, 200, ">= 4 s", host.ExitBroken},
		{"one in five is not, the age is within it", 800, "end-to-end.p99<9s", 3 * time.Second, 200, "because events were never read", host.ExitCannotTell},
		{"one in five is not, and it does not matter", 800, "end-to-end.p50<100ms", 3 * time.Second, 200, "3 ms", host.ExitOK},
		{"none is", 0, "end-to-end.p50<5s", time.Second, 1000, ">= 5.99 s", host.ExitBroken},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &holdingKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond}, from: tt.from}
				began := time.Now()
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "slo="+tt.limit, "drain="+tt.drain.String())}))(t)
				if took := time.Since(began); tt.unread > 0 && (took < 9900*time.Millisecond+tt.drain || took > 11*time.Second+tt.drain) {
					t.Errorf("it took %v, want the run and its drain of %v", took, tt.drain)
				}
				e := doc.EndToEnd
				assert.True(t, doc.Totals.Unread == tt.unread && e.Censored == tt.unread && e.Count == 1000-tt.unread,
					"%d unread, %d end-to-end times and %d ages, want %d unread of 1,000",
					doc.Totals.Unread, e.Count, e.Censored, tt.unread)
				want := units.FormatCount(tt.unread) + " of 1,000 events were never read"
				assert.True(t, strings.Contains(doc.Headline(), want) == (tt.unread > 0), "the report begins with %q", doc.Headline())
				sum := measure.Counts{}
				ages := uint64(0)
				for i := range doc.Intervals {
					sum.Add(doc.Intervals[i].Counts)
					if s := doc.Intervals[i].EndToEnd; s != nil {
						ages += s.Censored
					}
				}
				assert.True(t, sum.Unread == tt.unread && ages == tt.unread, "the intervals have %d unread and %d ages", sum.Unread, ages)
				doc.Trust.OK = true // in virtual time it says nothing
				c := doc.Checks[len(doc.Checks)-1]
				assert.True(t, strings.Contains(c.Text, tt.says) && doc.ExitCode() == tt.code, "exit %d, %q; want %d, %q", doc.ExitCode(), c.Text, tt.code, tt.says)
				<-k.session.ended
			})
		})
	}
}

// TestHeldBack: what a system holds back is unread and not lost, and the verdict says why. The lag is what is
// unread, whatever the newest answer said.
func TestHeldBack(t *testing.T) {
	const why = "the last stable offset of log-0 stands at 800, because of the open transaction of producer id 7"
	for _, tt := range []struct {
		verify string
		answer int64 // the lag of the newest answer; -1: there was none
	}{{"true", 3}, {"false", 3}, {"false", -1}} {
		verify := tt.verify
		t.Run(fmt.Sprintf("verify %s, answer %d", verify, tt.answer), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := &holdingKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond}, from: 800, blocked: why, lag: []int64{tt.answer}}
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "verify="+verify)}))(t)
				assert.Equal(t, doc.Logs[0].Lag, 200, "lag")
				doc.Trust.OK = true // in virtual time it says nothing
				if verify == "false" {
					assert.True(t, slices.Contains(doc.Warnings, "not everything was read: "+why), "warnings %q", doc.Warnings)
					<-k.session.ended
					return
				}
				l := doc.Ledger
				assert.True(t, l.Lost == 0 && l.Unread == 200 && !l.Complete && l.Blocked == why, "got %+v, want 200 unread", l)
				c := doc.Checks[0]
				assert.True(t, c.Text == "cannot tell: 200 of 1,000 were not read: "+why && doc.ExitCode() == host.ExitCannotTell, "exit %d, %q", doc.ExitCode(), c.Text)
				<-k.session.ended
			})
		})
	}
}

// TestAbortedIsNotUnread: events of aborted transactions are not owed to the reader.
func TestAbortedIsNotUnread(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		none := func(uint64) bool { return false }
		k := &holdingKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond, stamped: true, sees: none, aborted: 900}, from: 800}
		doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k)}))(t)
		// Of the 200 that do not come, 100 were aborted.
		assert.True(t, doc.Totals.Unread == 100 && doc.EndToEnd.Censored == 100, "%d unread, %d ages; want 100", doc.Totals.Unread, doc.EndToEnd.Censored)
		<-k.session.ended
	})
}

// TestNeverReadTrace: each event that was not read has a row of a trace, as before.
func TestNeverReadTrace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := &holdingKind{fakeKind: &fakeKind{perBatch: 1, consumeDelay: 2 * time.Millisecond}, from: 800}
		file := filepath.Join(t.TempDir(), "t.parquet")
		doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: hold(t, k, "trace="+file), Trace: file}))(t)
		assert.Equal(t, doc.Trace.Rows, 1000, "rows")
		<-k.session.ended
	})
}

// TestFleetUnread: in a fleet, events that did not arrive have an age of at least the time from their due time
// until the reader ended; if not everything that arrived has a record, until they were sent.
func TestFleetUnread(t *testing.T) {
	const events = 100
	for _, tt := range []struct {
		name    string
		reading *Reading
		spoil   func(f *fleetLedger)
		unread  uint64
		oldest  time.Duration // age
	}{
		{"read to an end", &Reading{Whole: []bool{false}, Ends: []int64{events}, Until: 10 * time.Second}, nil, 20, 10*time.Second - 800*time.Millisecond},
		{"the reader was lost", nil, nil, 20, time.Millisecond}, // no event arrives before it is sent,
		{"arrivals without records", &Reading{Until: 10 * time.Second}, func(f *fleetLedger) { f.left[1] = 3 }, 20, time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			sends, reads := NewRecords(), NewRecords()
			sends.Of(func(int32) int32 { return 0 }, true, nil)
			assert.OK(t, reads.found(&Logs{Names: []string{"t-0"}, Starts: []int64{0}}))
			for k := range events {
				due := time.Duration(k) * 10 * time.Millisecond
				o := load.Outcome{Acked: 1, Place: int64(k), Sum: uint32(k + 1), Sent: due + time.Millisecond}
				o.First, o.Events, o.DueFirst, o.DueLast, o.Ready, o.FirstSent = uint64(k), 1, due, due, due, -1
				sends.Fired([]load.Outcome{o})
				if k < 80 {
					reads.Arrived(0, []load.Arrival{{Base: o.Place, Events: 1, Sum: o.Sum, At: due + 5*time.Millisecond}})
				}
			}
			f := &fleetLedger{times: true, phases: 1, interval: time.Second, logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
			for _, r := range []*Records{reads, sends} {
				for _, chunk := range r.Rest() {
					f.take(chunk)
				}
			}
			if tt.spoil != nil {
				tt.spoil(f)
			}
			out := outcome{result: &load.Result{Intervals: []measure.Interval{{Phase: measure.Measurement, End: 20 * time.Second}}}}
			out.result.Measurement.Acked = events
			g := &Combined{Agents: []Measured{{Reading: tt.reading}}, Rows: []report.Agent{{Reads: true, State: "complete"}}}
			f.finish(nil, g, &out)
			m := &out.result.Measurement
			ages := m.UnreadAges
			assert.True(t, m.Unread == tt.unread && ages.Count() == tt.unread && m.Consumed == events-tt.unread && ages.Max() == tt.oldest,
				"%d unread, %d read; %d ages up to %v, want %d up to %v",
				m.Unread, m.Consumed, ages.Count(), ages.Max(), tt.unread, tt.oldest)
			iv := &out.result.Intervals[0]
			assert.True(t, iv.Unread == tt.unread && iv.UnreadAges.Count() == tt.unread, "the interval has %d unread and %d ages", iv.Unread, iv.UnreadAges.Count())
		})
	}
}

// TestFleetUnrecorded: nothing is known of acked events whose records did not come, not even an age.
func TestFleetUnrecorded(t *testing.T) {
	f := &fleetLedger{times: true, phases: 1, interval: time.Second, logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
	f.begin(&Logs{Names: []string{"t-0"}, Starts: []int64{0}})
	out := outcome{result: &load.Result{}}
	out.result.Measurement.Acked = 9
	f.finish(nil, &Combined{Agents: []Measured{{Reading: &Reading{Whole: []bool{true}, Ends: []int64{0}, Until: time.Minute}}}, Rows: []report.Agent{{Reads: true, State: "complete"}}}, &out)
	m := &out.result.Measurement
	ages := m.UnreadAges
	assert.True(t, ages.Count() == 9 && ages.Max() == 0 && m.Unread == 0, "%d ages up to %v, %d unread; want 9 of 0 and no unread", ages.Count(), ages.Max(), m.Unread)
}

// TestFleetLower: the lower bound of end-to-end times in a fleet is without the lateness of other events and
// without freezes of the reader, as in one program.
func TestFleetLower(t *testing.T) {
	const events = 100
	var want load.LowerBound
	sends, reads := NewRecords(), NewRecords()
	sends.Of(func(int32) int32 { return 0 }, true, nil)
	assert.OK(t, reads.found(&Logs{Names: []string{"t-0"}, Starts: []int64{0}}))
	f := &fleetLedger{times: true, phases: 1, interval: time.Second, logOf: map[int32]int32{}, byPhase: map[int32]*endToEnd{}, byRow: map[rowKey]*endToEnd{}}
	var frozen, news load.Frozen // the reader stood still while a fetch was on its way: 40 ms of some events' 50
	reads.froze = func(time.Duration) load.Frozen { return news }
	for k := 7; k < events; k += 10 {
		due := time.Duration(k) * 10 * time.Millisecond
		frozen.Add(due+5*time.Millisecond, due+45*time.Millisecond)
	}
	for k := range events {
		due := time.Duration(k) * 10 * time.Millisecond
		o := load.Outcome{Acked: 1, Place: int64(k), Sum: uint32(k + 1), Sent: due + time.Millisecond, Done: due + 2*time.Millisecond}
		o.First, o.Events, o.DueFirst, o.DueLast, o.Ready, o.FirstSent = uint64(k), 1, due, due, due, -1
		at := due + 5*time.Millisecond
		if k%10 == 3 { // it queued behind a burst
			o.Late, at = 40*time.Millisecond, due+50*time.Millisecond
		}
		if news = nil; k%10 == 7 {
			at = due + 50*time.Millisecond
			news.Add(due+5*time.Millisecond, due+45*time.Millisecond)
		}
		sends.Fired([]load.Outcome{o})
		reads.Arrived(0, []load.Arrival{{Base: o.Place, Events: 1, Sum: o.Sum, At: at}})
		p := o.ReadAt(at, at, frozen.Within)
		want.Record(p.Since(due), 1)
	}
	for _, r := range []*Records{reads, sends} {
		for _, chunk := range r.Rest() {
			f.take(chunk)
		}
	}
	r := &load.Result{Intervals: []measure.Interval{{Phase: measure.Measurement, End: 20 * time.Second}}}
	f.addTimes(r, 0)
	lower, times := r.Measurement.Lower.EndToEnd, r.Measurement.EndToEnd
	p := times.Percentile(99)
	assert.True(t, p >= 49*time.Millisecond, "end to end p99 %v, want 50 ms", p)
	got, one := lower.Percentile(99), want.Bound().Percentile(99)
	assert.True(t, (got-one).Abs() <= one/1000 && got <= 11*time.Millisecond, "lower bound of p99 %v, in one program %v, want 10 ms", got, one)
}

// A staleSource was last told of an old end of its log.
type staleSource struct {
	load.Source
	placed
	rebalancing time.Duration
}

func (staleSource) Ends(context.Context) ([]int64, error) { return []int64{1957, 7}, nil }
func (s staleSource) Rebalancing() time.Duration          { return s.rebalancing }
func (s staleSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Seeker: s}
}

// TestFreshLag: the lag at the end of a run that reads is what is unread then, not what the newest answer said.
func TestFreshLag(t *testing.T) {
	for _, tt := range []struct {
		name        string
		rebalancing time.Duration
		want        []int64
	}{{"partitions of its own", 0, []int64{1857, -1}}, {"a group", time.Millisecond, []int64{227, -1}}} {
		t.Run(tt.name, func(t *testing.T) {
			r := &load.Result{Logs: []load.LogResult{{Lag: 227}, {Lag: -1}}}
			src := staleSource{placed: placed{at: []int64{100, 0}}, rebalancing: tt.rebalancing}
			(&execution{}).freshLag(t.Context(), r, src)
			got := []int64{r.Logs[0].Lag, r.Logs[1].Lag}
			assert.True(t, slices.Equal(got, tt.want), "lag %d, want %d", got, tt.want)
		})
	}
}
