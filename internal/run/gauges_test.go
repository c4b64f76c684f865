package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/measure"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// Metrics are read before, once an interval, and after; an interval without an answer is a hole, and a slow
// source does not delay another.
func TestGaugeReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0.0
		rate := func(context.Context) ([]measure.Figure, error) {
			n++
			switch n {
			case 3:
				return nil, errors.New("not now")
			case 4:
				return []measure.Figure{{Name: "queue", Value: math.NaN()}}, nil
			}
			return []measure.Figure{{Name: "in rate", Unit: "events/s", Value: 10 * n, Counts: true}, {Name: "queue", Value: -n}}, nil
		}
		asks := 0
		slow := func(ctx context.Context) ([]measure.Figure, error) {
			asks++
			began := time.Now()
			<-ctx.Done()
			took := time.Since(began)
			assert.True(t, took <= pollTimeout, "a request took %v", took)
			return nil, ctx.Err()
		}
		var mu sync.Mutex
		seen := map[string][]int{} // how many metrics, by source
		q := newGaugeReader([]namedSource{{"server", rate}, {"system", slow}}, time.Second, func(from string, figures []measure.Figure) {
			mu.Lock()
			defer mu.Unlock()
			seen[from] = append(seen[from], len(figures))
		})
		q.before(t.Context())
		began := time.Now()
		q.begin(func() time.Duration { return time.Since(began) })
		time.Sleep(5700 * time.Millisecond) // the last request to the slow source has ended
		q.end(t.Context(), 0)
		got, words := q.gauges()
		want := []measure.Gauge{
			{
				From: "server", Name: "in rate", Unit: "events/s", Counts: true, Before: new(float64(10)), After: new(float64(70)), Missed: 2,
				Points: []measure.Point{{At: time.Second, Value: 20}, {At: 4 * time.Second, Value: 50}, {At: 5 * time.Second, Value: 60}},
			},
			{
				From: "server", Name: "queue", Before: new(float64(-1)), After: new(float64(-7)), Missed: 2,
				Points: []measure.Point{{At: time.Second, Value: -2}, {At: 4 * time.Second, Value: -5}, {At: 5 * time.Second, Value: -6}},
			},
		}
		assert.Same(t, got, want, "gauges")
		assert.Same(t, seen, map[string][]int{"server": {2, 0, 0, 2, 2}, "system": {0, 0, 0, 0, 0}}, "seen during the run")
		assert.Equal(t, asks, 7, "requests to the slow source")
		wantWords := []string{
			"reading the server's own metrics failed once: not now",
			"the system's own metrics could not be read: context deadline exceeded",
		}
		assert.Same(t, words, wantWords, "words")
	})
}

// The last reading waits for what the system counts of the acked events: until all are counted, or nothing more is.
func TestGaugeReaderSettles(t *testing.T) {
	for _, tt := range []struct {
		most float64 // that the system ever counts
		took time.Duration
	}{{100, 2*time.Second + settlingEvery}, {50, 3*settlingEvery + settledAfter + 2*settlingEvery}} {
		synctest.Test(t, func(t *testing.T) {
			n := 0.0
			count := func(context.Context) ([]measure.Figure, error) {
				n++
				return []measure.Figure{{Name: "exported", Value: min(10*n, tt.most), Total: true, Stage: true}}, nil
			}
			q := newGaugeReader([]namedSource{{"system", count}}, time.Second, nil)
			q.before(t.Context())
			q.begin(func() time.Duration { return 0 })
			ended := time.Now()
			q.end(t.Context(), 100)
			assert.Equal(t, time.Since(ended), tt.took, "wait")
			g, _ := q.gauges()
			assert.True(t, len(g) == 1 && g[0].Stage && *g[0].After == tt.most, "gauges %+v", g)
		})
	}
}

// The end of a run cancels a request, which does not count as a failure.
func TestGaugeReaderIsCanceled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		late := func(ctx context.Context) ([]measure.Figure, error) {
			if n++; n == 2 {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			return []measure.Figure{{Name: "rate", Value: 1}}, nil
		}
		q := newGaugeReader([]namedSource{{"server", late}}, time.Second, nil)
		q.before(t.Context())
		q.begin(func() time.Duration { return 0 })
		time.Sleep(1200 * time.Millisecond)
		q.end(t.Context(), 0)
		g, words := q.gauges()
		assert.True(t, len(words) == 0 && g[0].Missed == 0 && g[0].After != nil, "got %+v and the words %q, want no miss and no words", g, words)
	})
}

// TestGaugesAreBounded: points are merged in pairs when there are too many, and
// a hole stays a hole. The number of gauges of one source is limited.
func TestGaugesAreBounded(t *testing.T) {
	a := &polledSource{namedSource: namedSource{from: "server"}, maxPoints: 4, pollsPerPoint: 1}
	for i := range 9 {
		var f []measure.Figure
		if i != 5 && i != 6 {
			f = []measure.Figure{{Name: "rate", Value: float64(i)}}
		}
		a.note(f, time.Duration(i+1)*time.Second)
	}
	// Nine requests in at most four points are groups of four: 0-3, 4-7 and 8.
	want := []measure.Point{{At: 4 * time.Second, Value: 1.5}, {At: 8 * time.Second, Value: 5.5}, {At: 9 * time.Second, Value: 8}}
	g := a.figureSeries[0].gauge(a)
	diff := cmp.Diff(want, g.Points)
	assert.True(t, diff == "" && g.Missed == 2, "missed %d, want 2; points (-want +got):\n%s", g.Missed, diff)
	// A metric that appears now was not missed before.
	a.note([]measure.Figure{{Name: "rate", Value: 1}, {Name: "new", Value: 1}}, 10*time.Second)
	a.note([]measure.Figure{{Name: "rate", Value: 1}}, 11*time.Second)
	g = a.figureSeries[1].gauge(a)
	assert.True(t, g.Missed == 1, "missed %d since its first value, want 1", g.Missed)
	var many []measure.Figure
	for i := range mostGauges - 1 {
		many = append(many, measure.Figure{Name: fmt.Sprint("figure ", i)})
	}
	a.note(many, 10*time.Second)
	assert.True(t, len(a.figureSeries) == mostGauges && len(a.warnings()) == 1,
		"%d gauges and the words %q, want %d and one", len(a.figureSeries), a.warnings(), mostGauges)
}

// A figuresKind is a fakeKind whose metric is the number of events in its log.
type figuresKind struct{ fakeKind }

func (m *figuresKind) Open(ctx context.Context, s protocol.Spec) (protocol.Session, error) {
	sess, err := m.fakeKind.Open(ctx, s)
	return figuresSession{sess.(*fakeSession)}, err
}

type figuresSession struct{ *fakeSession }

func (s figuresSession) Capabilities() protocol.SessionCapabilities {
	return protocol.SessionCapabilities{Figures: func(context.Context) ([]measure.Figure, error) {
		return []measure.Figure{{Name: "events", Value: float64(s.end.Load())}}, nil
	}}
}

// TestReportHasGauges: sending and reading runs both have gauges.
func TestReportHasGauges(t *testing.T) {
	for _, tt := range []struct {
		name  string
		set   []string
		after float64 // at least
	}{{"sending", []string{"concurrency=1", "for=3s"}, 2900}, {"consuming", []string{"op=consume", "for=3s", "idle-timeout=1h"}, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &figuresKind{}
				w := resolve(t, &m.fakeKind, tt.set...)
				w.Kind = m
				doc := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: w}))(t)
				figureSeries := slices.DeleteFunc(doc.Gauges, func(g report.Gauge) bool { return g.From == "host" })
				assert.Must(t, len(figureSeries) == 1, "got %d gauges of the server, want 1", len(figureSeries))
				g := figureSeries[0]
				assert.True(t, g.From == "server" && g.Before != nil && *g.Before == 0 && g.After != nil && *g.After >= tt.after && len(g.Points) >= 2,
					"got %+v, want before 0 and %g or more after", g, tt.after)
				assert.True(t, len(doc.Warnings) == 0 || !strings.Contains(doc.Warnings[0], "figures"), "it warns: %q", doc.Warnings)
			})
		})
	}
}

// What is wrong with the machine is a warning of the report, once, and the report that was
// stored prints the same. It decides neither the exit code nor the trust.
func TestMachineWarnings(t *testing.T) {
	for _, tt := range []struct {
		name string
		host any
		want string // the beginning of the warning; "": none
	}{
		{"a good machine", host.Host{OS: "linux", Cores: 4, Clock: "tsc", Governor: "performance"}, ""},
		{"a slow clock", host.Host{OS: "linux", Cores: 4, Clock: "hpet"}, "the clock source is hpet: "},
		{"no description", nil, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := assert.Value(Execute(t.Context(), Job{Portable: true, Workload: resolve(t, &fakeKind{}, "count=10"), Host: tt.host}))(t)
				n := 0
				for _, text := range d.Warnings {
					if strings.HasPrefix(text, "the clock source") {
						n++
						assert.True(t, tt.want != "" && strings.HasPrefix(text, tt.want) && strings.Contains(text, "; "), "got %q", text)
					}
				}
				assert.True(t, n <= 1 && (n != 0 || tt.want == "") && d.ExitCode() == host.ExitOK,
					"%d warnings, exit code %d: %q; trust: %q", n, d.ExitCode(), d.Warnings, d.Trust.Reasons)
				var stored bytes.Buffer
				assert.OK(t, d.WriteJSON(&stored))
				read, err := report.Read(&stored)
				assert.True(t, err == nil && slices.Equal(read.Warnings, d.Warnings) && read.ExitCode() == d.ExitCode(),
					"the stored report differs (%v): got %q", err, read.Warnings)
			})
		})
	}
}

// The log has the newest lines, and never more than the limit.
func TestSystemLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "system.log")
	assert.OK(t, os.WriteFile(path+".1", []byte("of an earlier run\n"), 0o600))
	l := assert.Value(openSystemLog(path))(t)
	shown := 0
	add := l.tee(func(string) { shown++ })
	add("first")
	if data, _ := os.ReadFile(path); string(data) != "first\n" {
		t.Errorf("while it runs: %q", data)
	}
	_, err := os.Stat(path + ".1")
	assert.True(t, err != nil, "the log of an earlier run is still there")
	line := strings.Repeat("x", 1<<20-1)
	for range 17 {
		add(line)
	}
	add("last")
	l.close()
	l.close()
	add("after")
	old := assert.Value(os.ReadFile(path + ".1"))(t)
	data, err := os.ReadFile(path)
	assert.True(t, err == nil && strings.HasSuffix(string(data), "\nlast\n") && len(old)+len(data) <= mostSystemLog &&
		len(old) == mostSystemLog/2, "%v: %d and %d bytes", err, len(old), len(data))
	assert.Equal(t, shown, 20, "lines shown")
	_, err = openSystemLog(filepath.Join(path, "x"))
	assert.ErrorHas(t, err, "write --system-log", "a folder that is a file")
}
