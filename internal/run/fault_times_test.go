package run

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestExplains: a fault that reached the system explains an end for a while after it.
func TestExplains(t *testing.T) {
	const killed, again = 10 * time.Second, 100 * time.Second
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		at := func(d time.Duration) time.Time { return began.Add(d) }
		sleep := func(until time.Duration) { time.Sleep(time.Until(at(until))) }
		var b faultWindows
		sleep(5 * time.Second)
		b.kill(func() bool { return false }) // it reached nothing
		sleep(killed)
		b.kill(func() bool { return true })
		sleep(again)
		b.kill(func() bool { return true })
		for _, tt := range []struct {
			name string
			at   time.Duration
			want bool
		}{
			{"after a kill that reached nothing", 6 * time.Second, false},
			{"before the kill", killed - 1, false},
			{"at the kill", killed, true},
			{"soon after it", killed + afterFault, true},
			{"long after it", killed + afterFault + 1, false},
			{"after the second", again + time.Second, true},
		} {
			assert.Equal(t, b.explains(at(tt.at)), tt.want, "%s", tt.name)
		}
	})
}

// What is kept leaves no room to the collector, but a little always.
func TestRoomPercent(t *testing.T) {
	const mib = 1 << 20
	for _, tt := range []struct {
		name       string
		asked      uint64
		live, kept int64
		want       uint64
	}{
		{"nothing is kept", 100, 30 * mib, 0, 100},
		{"most is kept", 100, 40 * mib, 30 * mib, 25},
		{"all is kept", 100, 40 * mib, 40 * mib, 10},
		{"more is kept than the last collection saw", 100, 40 * mib, 50 * mib, 10},
		{"the user's setting", 400, 40 * mib, 30 * mib, 100},
		{"a small heap", 100, 3 * mib, 2 * mib, 100},
		{"no collection yet", 100, 0, mib, 100},
		{"a huge heap", 10, 4096 * mib, 4096 * mib, 1},
	} {
		assert.Equal(t, roomPercent(tt.asked, tt.live, tt.kept), tt.want, "%s", tt.name)
	}
}

func gcPercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return sampled(s[0])
}

// Executions share the setting. The last one that ends restores what the user asked for, even if
// that changed in between.
func TestHeapRoomIsRestored(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(80))
	ballast := make([]byte, 64<<20)
	runtime.GC()
	var a, b heapRoom
	a.keep(24 << 20)
	one := gcPercent()
	b.keep(24 << 20)
	both := gcPercent()
	runtime.KeepAlive(ballast)
	assert.True(t, one < 80 && both < one, "got %d and %d, want less than 80, and less with two", one, both)
	a.keep(0)
	got := gcPercent()
	assert.True(t, got > both && got < 80, "got %d after one ended, want more than %d and less than 80", got, both)
	debug.SetGCPercent(60)
	b.keep(20 << 20)
	if b.keep(0); gcPercent() != 60 {
		t.Errorf("got %d at the end, want 60", gcPercent())
	}
	debug.SetGCPercent(-1)
	b.keep(24 << 20)
	if b.keep(0); gcPercent() < 1<<20 {
		t.Errorf("the collector was turned on, with %d", gcPercent())
	}
}

// A mute is a source that gives nothing, and knows why.
type mute struct {
	load.Source
	why string
}

func (m mute) Capabilities() load.SourceCapabilities {
	return load.SourceCapabilities{WhyNothing: func(context.Context) string { return m.why }}
}

// A run that read nothing says so, and why. If it should have read something it fails.
func TestNothingRead(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name     string
		settings []string
		change   func(*load.Result)
		text     string // "": nothing is said
		fails    bool
	}{
		{"for a time", []string{"for=1s"}, nil, "nothing was read: it began at the end", false},
		{"a number of events", []string{"count=10"}, nil, "nothing was read: it began at the end", true},
		{"in the warm-up", []string{"for=1s"}, func(r *load.Result) { r.Warmup.Consumed = 5 }, "nothing was read: everything had been read in the warm-up", false},
		{"something", []string{"for=1s"}, func(r *load.Result) { r.Measurement.Consumed = 5 }, "", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, append(tt.settings, "op=consume")...)}}
			out := outcome{result: &load.Result{Mode: load.Consuming}}
			if tt.change != nil {
				tt.change(out.result)
			}
			e.noteNothing(&out, mute{why: "it began at the end"})
			said := strings.Join(out.warnings, "; ")
			for _, c := range out.checks {
				assert.Equal(t, c.OK, false, "whether check %s holds", c.Name)
				said += c.Text
			}
			assert.Equal(t, said, tt.text, "what is said")
			assert.Equal(t, len(out.checks) > 0, tt.fails, "fails")
			assert.Equal(t, out.notice != "", tt.text != "", "whether the headline says so")
		})
	}
}

// Of several generators that read, some may get nothing. The run of all has read nothing only if none did.
func TestNothingReadByOne(t *testing.T) {
	t.Parallel()
	e := &execution{Job: Job{Workload: resolve(t, &fakeKind{}, "count=10", "op=consume"), Share: &Share{}}}
	out := outcome{result: &load.Result{Mode: load.Consuming}}
	e.noteNothing(&out, mute{why: "it began at the end"})
	assert.Equal(t, strings.Join(out.warnings, "; "), "nothing was read: it began at the end", "warning")
	assert.Equal(t, out.notice, "", "notice of one")
	assert.Equal(t, len(out.checks), 0, "checks of one")
	for _, read := range []uint64{0, 10} {
		of := func(n uint64) Measured {
			return Measured{Facts: map[string]any{}, Result: &load.Result{
				Mode: load.Consuming, Stopped: load.ByEvents, Measurement: measure.Tally{Name: measure.Measurement, End: time.Second, Counts: measure.Counts{Consumed: n}},
			}}
		}
		all := &Combined{Agents: []Measured{of(0), of(read)}, Rows: make([]report.Agent, 2)}
		out := outcome{}
		e.merge(all, &load.Plan{}, &out)
		assert.Equal(t, len(out.checks) > 0, read == 0, "%d events were read, fails", read)
		assert.Equal(t, out.notice != "", read == 0, "%d events were read, the headline says that there were none", read)
	}
}

// The rate of a run that read includes the wait for the first event. If that is long, the report says so.
func TestWaitedAtStart(t *testing.T) {
	for _, tt := range []struct {
		name             string
		first, rebalance time.Duration
		consumed         uint64
		want             string
	}{
		{"a share group", 7 * time.Second, 0, 50_000, "the first event came after 5 s of the measurement: the rate includes that wait (without it 10 k/s)"},
		{"a short wait", 2500 * time.Millisecond, 0, 95_000, ""},
		{"while it joined a group, which the report has", 7 * time.Second, 5 * time.Second, 50_000, ""},
		{"nothing", -1, 0, 0, ""},
		{"in the warm-up", time.Second, 0, 100_000, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := &load.Result{Rebalance: tt.rebalance, Measurement: measure.Tally{Start: 2 * time.Second, End: 12 * time.Second, Counts: measure.Counts{Consumed: tt.consumed}}}
			assert.Equal(t, strings.Join(waitedAtStart(r, tt.first), "; "), tt.want, "warning")
		})
	}
}

// What the target says first does not replace that nothing was read.
func TestNoticesAreJoined(t *testing.T) {
	assert.Equal(t, joinNotices("", "nothing was read"), "nothing was read", "without one of the target")
	assert.Equal(t, joinNotices("the broker created the topic", "nothing was read"), "the broker created the topic, nothing was read", "with one")
	assert.Equal(t, joinNotices("", ""), "", "without any")
}
