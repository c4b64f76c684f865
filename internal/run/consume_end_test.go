package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/host"
	"carronade/internal/null"
	"carronade/internal/report"
	"carronade/internal/store"
	"carronade/internal/store/sqlite"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestWaitedAtEnd: a run that continued after it had read everything says so. That wait is not a stall of
// the system while the system says that there are no events.
func TestWaitedAtEnd(t *testing.T) {
	const text = "the end of the logs was reached at 2 s, and nothing came in the 6 s after it: the rate includes that wait (without it 100/s)"
	for _, tt := range []struct {
		name    string
		k       fakeKind
		warning string
		stalls  uint64
		longest float64 // s
		share   float64
	}{
		{"it has everything", fakeKind{feedFor: 2 * time.Second, says: 500 * time.Millisecond}, text, 0, 0, 0},
		{"then the system is silent", fakeKind{feedFor: 2 * time.Second, says: 500 * time.Millisecond, lostFrom: 5 * time.Second, lostUntil: time.Hour}, text, 1, 3, 0.375},
		{"the system says nothing", fakeKind{feedFor: 2 * time.Second}, "", 1, 6, 0.75},
		{"just before its end", fakeKind{feedFor: 7500 * time.Millisecond, says: 500 * time.Millisecond}, "", 0, 0, 0},
		{"there is more", fakeKind{says: 500 * time.Millisecond}, "", 0, 0.01, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tt.k.feed = 10 * time.Millisecond
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &tt.k, "op=consume", "for=8s", "idle-timeout=1h")}))(t)
				got := ""
				for _, w := range d.Warnings {
					if strings.Contains(w, "end of the logs") {
						got = strings.ReplaceAll(w, "\u00a0", " ")
					}
				}
				assert.Equal(t, got, tt.warning, "the warning")
				if s := &d.Stall; d.Stopped != load.ByTime || s.Count != tt.stalls || math.Abs(s.LongestS-tt.longest) > 0.02 || math.Abs(s.Share-tt.share) > 0.01 || len(s.Spans) != int(s.Count) {
					t.Errorf("ended by %s, stalls %+v; want %d, the longest %v s, %v of the time", d.Stopped, *s, tt.stalls, tt.longest, tt.share)
				}
				<-tt.k.session.ended
			})
		})
	}
}

// Committed implements protocol.Transactions.
func (s *fakeSession) Committed() load.Source { return &committedSource{fakeSource: fakeSource{s}} }
func (s *fakeSession) EndTransactions()       {}

func (s *fakeSession) Uncommitted(note func(stream int32, first, events uint64, aborted bool)) {
	note(0, 0, s.m.aborted, true)
}

// committedSource reads the events that the test lets a reader of committed events see.
type committedSource struct {
	fakeSource
	at atomic.Int64
}

func (c *committedSource) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Seeker: c}
}

func (c *committedSource) Positions() []int64 { return []int64{c.at.Load()} }

func (c *committedSource) Receive(ctx context.Context, now func() time.Duration, sink func(int, []load.Arrival)) error {
	end := c.end.Load()
	for i := range end {
		if c.m.sees(uint64(i)) {
			sink(0, []load.Arrival{{Base: i, Events: 1, At: now(), Stamps: []load.Stamp{{Run: c.run, Index: uint64(i), Offset: i}}}})
		}
	}
	c.at.Store(end)
	<-ctx.Done()
	return ctx.Err()
}

// TestTransactions verifies transactions with both readers.
func TestTransactions(t *testing.T) {
	for _, tt := range []struct {
		name string
		sees func(index uint64) bool
		want measure.Ledger
		code int
		text string
	}{
		{"no error", func(n uint64) bool { return n >= 40 }, measure.Ledger{CommittedRead: 160}, host.ExitOK, "nothing was lost or altered"},
		{"aborted ones are seen", func(n uint64) bool { return n >= 37 }, measure.Ledger{CommittedRead: 160, Phantom: 3}, host.ExitBroken, "3 aborted events seen by a read_committed consumer"},
		{"committed ones are not", func(n uint64) bool { return n >= 45 }, measure.Ledger{CommittedRead: 155, Lost: 5}, host.ExitBroken, "5 events lost"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &fakeKind{consumeDelay: time.Millisecond, stamped: true, sees: tt.sees, aborted: 40}
				doc, err := Execute(t.Context(), Job{Portable: true, Workload: resolve(t, m, "op=roundtrip", "verify=true", "count=200", "rate=100/s", "batch-events=1")})
				assert.OK(t, err)
				doc.Trust.OK = true // in virtual time it says nothing
				l := *doc.Ledger
				got := measure.Ledger{CommittedRead: l.CommittedRead, Phantom: l.Phantom, Lost: l.Lost}
				if got.Phantom != tt.want.Phantom || got.Lost != tt.want.Lost || got.CommittedRead != tt.want.CommittedRead || l.Committed != 160 || l.Aborted != 40 || l.Unread+l.Inexact != 0 || !l.Complete {
					t.Errorf("got %+v", l)
				}
				if c := doc.Checks; len(c) != 1 || c[0].Text != tt.text || doc.ExitCode() != tt.code {
					t.Errorf("checks %+v, exit code %d, want %q and %d", c, doc.ExitCode(), tt.text, tt.code)
				}
				<-m.session.ended
			})
		})
	}
}

// placed has the offsets at which the reading of logs began and ended.
type placed struct{ starts, at []int64 }

func (p placed) Starts() []int64                                { return p.starts }
func (p placed) Positions() []int64                             { return p.at }
func (placed) Ends(context.Context) (ends []int64, err error)   { return nil, nil }
func (placed) Heads(context.Context) (heads []int64, err error) { return nil, nil }

// The logs that were read to their ends are distinguished from the others.
func TestReached(t *testing.T) {
	for _, tt := range []struct {
		name             string
		starts, at, ends []int64
		want             []bool
	}{
		{"both", []int64{0, 0}, []int64{40, 30}, []int64{40, 30}, []bool{true, true}},
		{"half of the first", []int64{0, 0}, []int64{20, 30}, []int64{40, 30}, []bool{false, true}},
		{"a log that has become shorter", []int64{10, 10}, []int64{40, 30}, []int64{20, 40}, []bool{true, false}},
		{"a log that was created anew", []int64{10, 0}, []int64{40, 30}, []int64{5, 30}, []bool{false, true}},
		{"the ends are unknown", []int64{0, 0}, []int64{40, 30}, nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &readback{seek: placed{tt.starts, tt.at}}
			got := b.reached(tt.ends)
			assert.True(t, slices.Equal(got, tt.want) && all(got) == (tt.want != nil && !slices.Contains(tt.want, false)), "got %v, all %v, want %v", got, all(got), tt.want)
		})
	}
}

// jumping is a source that knows which events it could not read.
type jumping struct{ load.Source }

func (jumping) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{Skipped: func() [][]load.Span { return [][]load.Span{{{From: 3, To: 5}}} }}
}

// silent cannot say where its logs begin.
type silent struct{ placed }

func (silent) Heads(context.Context) ([]int64, error) { return nil, errors.New("no answer") }

// TestRemoved: events that were removed before they were read are known
// although the heads of the logs are not, if the source knows what it skipped.
func TestRemoved(t *testing.T) {
	for _, tt := range []struct {
		name  string
		src   load.Source
		want  []load.Span
		fails bool
	}{
		{"a source that knows", jumping{}, []load.Span{{From: 3, To: 5}}, false},
		{"a source that does not", fakeSource{&fakeSession{m: new(fakeKind)}}, nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := &readback{src: tt.src, seek: silent{placed{[]int64{0}, []int64{40}}}}
			var got []load.Span
			err := b.reportRemoved(t.Context(), func(_ int32, from, to int64) { got = append(got, load.Span{From: from, To: to}) })
			assert.True(t, slices.Equal(got, tt.want) && (err != nil) == tt.fails,
				"got %v and %v, want %v, an error %v", got, err, tt.want, tt.fails)
		})
	}
}

// TestPipelines: the report of a pipeline has both stages, and a check that everything was
// read. An interruption ends the waiting, and what was not read by then breaks the check.
func TestPipelines(t *testing.T) {
	for _, tt := range []struct {
		name      string
		interrupt time.Duration // 0: none
		read      uint64
		check     string
		code      int
	}{
		{"to its end", 0, 2000, "every acked event was read", host.ExitOK},
		{"interrupted", 15 * time.Second, 0, "2,000 acked events not read when the run ended", host.ExitInterrupted},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var doc workload.Document
				for _, p := range []string{"target=null://here", "op=pipeline", "rate=1k/s", "for=2s", "read-delay=20s"} {
					name, v, _ := strings.Cut(p, "=")
					doc.Add(name, "--"+name, v)
				}
				w := assert.Value(workload.Resolve([]protocol.Kind{null.Kind{}}, &doc, nil))(t)
				ctx, abort := context.Background(), make(chan struct{})
				if tt.interrupt > 0 {
					var stop context.CancelFunc
					ctx, stop = context.WithCancel(ctx)
					time.AfterFunc(tt.interrupt, func() { stop(); close(abort) })
				}
				d := assert.Value(Execute(ctx, Job{Workload: w, Version: "test", Portable: true, Abort: abort}))(t)
				assert.Must(t, len(d.Parts) == 2 && d.Parts[0].Name == "send" && d.Parts[1].Name == "read", "parts %+v", d.Parts)
				got := d.Parts[1].Totals
				assert.True(t, got.Offered == 2000 && got.Acked == tt.read && got.Unsent == 2000-tt.read, "read %d of %d, %d not begun", got.Acked, got.Offered, got.Unsent)
				s := d.Parts[1].SendDelay
				assert.True(t, tt.read == 0 || s != nil && s.Max == 0, "reads began late: %+v", s)
				if e := d.EndToEnd; tt.read > 0 && (e == nil || e.Count != 2000 || e.Min < 19.9e6 || e.Max > 20.3e6) {
					t.Errorf("end to end %+v", e)
				}
				var text string
				for _, c := range d.Checks {
					if c.Name == "read" {
						text = c.Text
						assert.Equal(t, c.OK, (tt.read == 2000), "the check: %+v", c)
					}
				}
				assert.True(t, text == tt.check && d.ExitCode() == tt.code,
					"check %q, exit %d; want %q, %d", text, d.ExitCode(), tt.check, tt.code)
			})
		})
	}
}

const brokers = "null://brokers"

// loaded returns a Load function with a known result.
func loaded(r *load.Result) func(context.Context, func()) (string, *load.Result, error) {
	return func(_ context.Context, began func()) (string, *load.Result, error) {
		began()
		return brokers, r, nil
	}
}

// The report has the settings of the job, and no others.
func TestTopics(t *testing.T) {
	for _, tt := range []struct {
		name string
		job  TopicsJob
		want map[string]any
	}{
		{"by name", TopicsJob{Op: "delete", Count: 2}, map[string]any{"op": "topics delete", "count": 2}},
		{"without end", TopicsJob{Op: "read", Count: -1, For: time.Second}, map[string]any{"op": "topics read", "for": "1s"}},
		{
			"every setting",
			TopicsJob{Op: "create", Count: 7, PerRequest: 3, Concurrency: 2, Partitions: 5, Replicas: 1, Rate: 0.5},
			map[string]any{"op": "topics create", "count": 7, "per-request": 3, "concurrency": 2, "partitions": 5, "replicas": 1, "rate": "0.5/s"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.Load = loaded(&load.Result{})
			tt.job.Labels, tt.job.Note = map[string]string{"a": "b"}, "why"
			d := assert.Value(Topics(t.Context(), tt.job))(t)
			settings := d.Workload.(map[string]any)
			tt.want["target"] = brokers
			for name, want := range tt.want {
				assert.Equal(t, settings[name], want, "%s", name)
			}
			assert.Equal(t, len(settings), len(tt.want), "settings")
			assert.True(t, d.Op == tt.want["op"] && d.Target == brokers && d.Labels["a"] == "b" && d.Note == "why" && d.Hash != "",
				"got op %q, target %q, labels %v, note %q, hash %q", d.Op, d.Target, d.Labels, d.Note, d.Hash)
		})
	}
}

// The generator of such a load is judged like that of any other.
func TestTopicsAreJudged(t *testing.T) {
	slow, quick := measure.NewHistogram(), measure.NewHistogram()
	slow.RecordN(2*time.Second, 3)
	quick.RecordN(time.Millisecond, 3)
	late := &load.Result{Mode: load.OpenLoop, Measurement: measure.Tally{
		Name: measure.Measurement, End: time.Second, Answers: 3, Arrived: 3, Counts: measure.Counts{Offered: 3, Sent: 3, Acked: 3},
		Set: measure.Set{SendDelay: slow, Response: slow}, Lower: measure.Lower{Response: quick},
	}}
	d := assert.Value(Topics(t.Context(), TopicsJob{Op: "list", Rate: 1, Load: loaded(late)}))(t)
	assert.True(t, !d.Trust.OK && len(d.Trust.Reasons) == 1 && d.Totals.AnswersPerS == 3,
		"got %+v, %g answers/s", d.Trust, d.Totals.AnswersPerS)
}

// The report of such a load, also after it was written and read, is cited as the command that makes it.
func TestTopicsAreCited(t *testing.T) {
	for _, tt := range []struct {
		job      TopicsJob
		at, want string
	}{
		{TopicsJob{Op: "create", Count: 7, PerRequest: 3, Concurrency: 2, Partitions: 5, Replicas: 1, Rate: 0.5}, "kafka://h:9092", "; topics create kafka://h:9092/TOPIC --count 7 --per-request 3 --concurrency 2 --partitions 5 --replicas 1 --rate 0.5/s; "},
		{TopicsJob{Op: "delete", Count: 2, PerRequest: 1}, "kafka://h:9092/old?x=1", "; topics delete 'kafka://h:9092/old?x=1' --count 2 --per-request 1; "},
		{TopicsJob{Op: "list", Count: 9, PerRequest: 1}, "kafka://h:9092", "; topics list kafka://h:9092 --times 9; "},
		{TopicsJob{Op: "read", Count: -1, For: time.Second, PerRequest: 1}, "kafka://h:9092/?x=1", "; topics read 'kafka://h:9092/TOPIC?x=1'; "},
	} {
		t.Run(tt.job.Op, func(t *testing.T) {
			tt.job.Load = func(context.Context, func()) (string, *load.Result, error) { return tt.at, &load.Result{}, nil }
			d := assert.Value(Topics(t.Context(), tt.job))(t)
			got := report.Cite(d)
			assert.True(t, strings.Contains(got, tt.want), "got  %s\nwant %s", got, tt.want)
			var text bytes.Buffer
			assert.OK(t, d.WriteJSON(&text))
			var read report.Document
			assert.OK(t, json.Unmarshal(text.Bytes(), &read))
			got = report.Cite(&read)
			assert.True(t, strings.Contains(got, tt.want), "after it was read: %s", got)
		})
	}
}

// An interruption is the normal end of a load without a limit, if it canceled no request.
func TestTopicsAreWhole(t *testing.T) {
	for _, tt := range []struct {
		name     string
		job      TopicsJob
		canceled uint64
		stopped  load.Reason
		partial  bool
	}{
		{"no limit", TopicsJob{Op: "list", Count: -1}, 0, load.Interrupted, false},
		{"no limit, and a request was canceled", TopicsJob{Op: "list", Count: -1}, 1, load.Interrupted, true},
		{"a number", TopicsJob{Op: "list", Count: 9}, 0, load.Interrupted, true},
		{"a time", TopicsJob{Op: "list", Count: -1, For: time.Hour}, 0, load.Interrupted, true},
		{"not interrupted", TopicsJob{Op: "list", Count: 9}, 0, load.ByEvents, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.job.Load = loaded(&load.Result{Stopped: tt.stopped, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second}, Classes: map[string]uint64{load.Canceled.String(): tt.canceled}})
			assert.Equal(t, assert.Value(Topics(t.Context(), tt.job))(t).Partial, tt.partial, "partial")
		})
	}
}

// The report is stored, also if the load was interrupted. A load that failed has none.
func TestTopicsAreKept(t *testing.T) {
	kept := assert.Value(sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "reports.db")))(t)
	defer kept.Close()
	calls := 0
	job := TopicsJob{Op: "list", Store: kept, Load: loaded(&load.Result{Started: time.Now(), Ended: time.Now()}), Stored: func(_ *report.Document, err error) {
		if calls++; err != nil {
			t.Error(err)
		}
	}}
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	d, err := Topics(ctx, job)
	assert.Must(t, err == nil && calls == 1, "got %v and %d results of storing", err, calls)
	assert.Value(kept.Get(t.Context(), d.ID))(t)
	refused := errors.New("no broker")
	job.Load = func(context.Context, func()) (string, *load.Result, error) { return "", nil, refused }
	d, err = Topics(t.Context(), job)
	assert.True(t, d == nil && errors.Is(err, refused), "got %v and %v, want %v", d, err, refused)
	if rows, err := kept.Rows(t.Context(), store.Query{Fields: []string{}}); err != nil || len(rows) != 1 || calls != 1 {
		t.Errorf("the store has %d reports, %v, and there were %d results of storing", len(rows), err, calls)
	}
	job.Store, job.Load = nil, loaded(&load.Result{})
	_, err = Topics(t.Context(), job)
	assert.True(t, err == nil && calls == 2, "without a store: %v, and %d results of storing, want 2", err, calls)
}
