package store

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/advice"
	"carronade/internal/report"
	"carronade/test/testkit/assert"
)

var now = began.Add(24 * time.Hour)

func TestFilters(t *testing.T) {
	r := RowOf(producedReport())
	for _, tt := range []struct {
		filter string
		want   bool
	}{
		{"rate=8k/s", true},
		{"rate=8000", true},
		{"rate!=8k/s", false},
		{"rate>=8k/s", true},
		{"rate>8k/s", false},
		{"rate<8001", true},
		{"for=30s", true},
		{"for=30000ms", true},
		{"duration=30s", true}, // by hey-apm's name
		{"duration>1m", false},
		{"events=10", true},
		{"events<11", true},
		{"size=1024", true},
		{"size>1000B", true},
		{"concurrency=1", false}, // the run has no concurrency
		{"concurrency!=1", false},
		{"limit=-1", true},
		{"limit!=-1", false},
		{"limit=4GiB", false},
		{"system-mem=none", true},
		{"report_id=v5yruht0", true},
		{"id~^v5", true},
		{"id~^5", false},
		{"branch=trace-apm-server", true},
		{"branch=master", false},
		{"branch!=master", true},
		{"branch~apm|master", true},
		{"branch==trace-apm-server", true},
		{"note=after lunch", true},
		{"verify=true", true},
		{"verify=no", false},
		{"apm-server.tracing.enabled=true", true},
		{"flag.apm-server.tracing.enabled=false", false},
		{"workers>3", true},
		{"team=ingest", true},
		{"label.team=other", false},
		{"tries<13", true},
		{"response_p50<26.1ms", true},
		{"response_p50<26ms", false},
		{"response_p99.9>=90ms", true},
		{"response_p999>=90ms", true},
		{"throughput=2.5/s", true},
		{"accepted<1KiB/s", true},
		{"max_rss>400MB", true},
		{"index_success_ratio>70%", true},
		{"index_share<0.7", false},
		{"failure_share>0", true},
		{"revision_date=2018-05-18", true},
		{"revision_date=2018-05", true},
		{"revision_date=2018", true},
		{"revision_date=2018-05-19", false},
		{"revision_date>2018-05-18", false}, // not before the day ends
		{"revision_date>=2018-05-18", true},
		{"revision_date<2018-05-19", true},
		{"revision_date<=2018-05-18", true},
		{"revision_date<2018-05-18", false},
		{"revision_date!=2018-05-18", false},
		{"revision_date=2018-05-18 10:21", true},
		{"revision_date=2018-05-18T10:20", false},
		{"revision_date>2018-05-18T12:20:00+02:00", true},
		{"started>168h", true}, // within the last week
		{"started<12h", true},  // before the last twelve hours
		{"started>12h", false},
		{"trusted=true", true},
		{"partial=1", false},
		{"kind~apm", true},
		{"status.503>0", true},
		{"target.version=8.1", true},
		{"host.memory>=16GiB", true},
		{"seed=2", false},
	} {
		fs, err := ParseFilters([]string{tt.filter}, now)
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
			continue
		}
		assert.Equal(t, fs.Match(&r), tt.want, "%s", tt.filter)
		assert.Equal(t, NewMatcher(fs).Match(&r), tt.want, "%s by a matcher", tt.filter)
	}
}

func TestFiltersThatMakeNoSense(t *testing.T) {
	r := RowOf(producedReport())
	for _, tt := range []struct {
		filter, says, hint string
	}{
		{"branch", "contains no comparison", "FIELD=VALUE"},
		{"=x", "names no field", "FIELD=VALUE"},
		{"branch=", "the value is missing", "FIELD=VALUE"},
		{"branch!x", "is not a comparison", "FIELD=VALUE"},
		{"branch~(", "missing closing", "regular expression"},
		{"for>fast", "fast", "30s"},
		{"rate=quick", "quick", "50k/s"},
		{"started>yesterday", "neither a date nor an age", "168h"},
		{"branch>master", "no order", "= != or ~"},
		{"trusted=perhaps", "true or false", ""},
		{"brnch=master", `no report has the field "brnch"`, "did you mean branch?"},
		{"workerz=4", "no report has the field ", "did you mean workers?"},
		{"teem=x", "no report has the field ", "did you mean team?"},
		{"concurency=4", "no report has the field ", "did you mean concurrency?"},
		{"zzzzzzz=4", "no report has the field ", "docs/reports.md"},
		{"gzip>none", "no order", "= != or ~"}, // known only from the rows
	} {
		fs, err := ParseFilters([]string{tt.filter}, now)
		if err == nil {
			m := NewMatcher(fs)
			m.Match(&r)
			err = m.Err()
		}
		if err == nil {
			t.Errorf("%s: no error", tt.filter)
			continue
		}
		assert.True(t, strings.Contains(err.Error(), tt.says), "%s: got %q, want it to say %q", tt.filter, err, tt.says)
		got := advice.Hint(err)
		assert.True(t, strings.Contains(got, tt.hint), "%s: the hint is %q, want it to contain %q", tt.filter, got, tt.hint)
	}
}

// A field that one row has is not an error, nor is a known one that no row has, nor any field without rows.
func TestMatcherReportsUnknownFields(t *testing.T) {
	a, b := RowOf(producedReport()), RowOf(consumedReport())
	for _, tt := range []struct {
		name, filter string
		rows         []*Row
		fails        bool
	}{
		{"in the second row", "until-end=true", []*Row{&a, &b}, false},
		{"after a filter that no row meets", "until-end=true", []*Row{&a}, true},
		{"known", "gc_pauses>1", []*Row{&b}, false},
		{"no rows", "anything=1", nil, false},
	} {
		fs := assert.Value(ParseFilters([]string{"id=none", tt.filter}, now))(t)
		m := NewMatcher(fs)
		for _, r := range tt.rows {
			m.Match(r)
		}
		err := m.Err()
		assert.True(t, (err != nil) == tt.fails, "%s: got %v", tt.name, err)
	}
}

// A setting that is a number in one report and a text in another is compared with each in its kind.
func TestMixedKinds(t *testing.T) {
	number := Row{Fields: []Field{{"events", guess("10")}}}
	span := Row{Fields: []Field{{"events", guess("10-20")}}}
	for _, tt := range []struct {
		filter       string
		number, span bool
	}{
		{"events=10", true, false},
		{"events=10-20", false, true},
		{"events!=10", false, true},
		{"events<11", true, false},
	} {
		fs := assert.Value(ParseFilters([]string{tt.filter}, now))(t)
		assert.Equal(t, fs.Match(&number), tt.number, "%s with 10", tt.filter)
		assert.Equal(t, fs.Match(&span), tt.span, "%s with 10-20", tt.filter)
	}
}

func TestParseLast(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Last
		ok   bool
	}{
		{"20", Last{N: 20}, true},
		{"168h", Last{Age: 168 * time.Hour}, true},
		{"7d", Last{Age: 168 * time.Hour}, true},
		{"0", Last{}, false},
		{"-3", Last{}, false},
		{"soon", Last{}, false},
		{"", Last{}, false},
	} {
		got, err := ParseLast(tt.text)
		assert.True(t, got == tt.want && (err == nil) == tt.ok, "%q: got %+v, %v", tt.text, got, err)
	}
	got := (Last{Age: time.Hour}).Since(now)
	assert.True(t, got.Equal(now.Add(-time.Hour)), "since is %v", got)
	assert.True(t, (Last{N: 3}).Since(now).IsZero(), "a number has an age")
}

// Any text is either a filter or an error with a hint, and any filter can be compared with any row.
func FuzzFilter(f *testing.F) {
	for _, text := range []string{"branch=master", "rate>=50k/s", "started>7d", "id~^v", "limit=-1", "a!=b", "=", "x~(", "response_p99.9<1ms", "revision_date<=2018-05"} {
		f.Add(text)
	}
	r := RowOf(producedReport())
	f.Fuzz(func(t *testing.T, text string) {
		fs, err := ParseFilters([]string{text}, now)
		if err != nil {
			assert.Must(t, advice.Hint(err) != "", "%q: %v, and no hint", text, err)
			return
		}
		m := NewMatcher(fs)
		got, want := m.Match(&r), fs.Match(&r)
		assert.Must(t, got == want, "%q: a matcher says %v, the filter %v", text, got, want)
		_ = m.Err()
	})
}

func TestQueue(t *testing.T) {
	unavailable, none := errors.New("unavailable"), func(int) error { return nil }
	between := func(from, to int) func(int) error {
		return func(try int) error {
			if try >= from && try < to {
				return unavailable
			}
			return nil
		}
	}
	const forever = 1 << 30
	for _, tt := range []struct {
		name  string
		fails func(try int) error
		size  int    // bytes of an interval
		want  string // what was stored of five intervals, one every 3.1 s
		tries int
	}{
		{"an available store", none, 1, "[0] [1] [2] [3] [4]", 5},
		{"unavailable once", between(1, 2), 1, "[0] [1] [2] [3] [4]", 6},
		{"unavailable for several attempts", between(1, 4), 1, "[0] [1 2 3] [4]", 6}, // tried after 1, 2 and 4 s
		{"unavailable to the end", between(3, forever), 1, "[0] [1] [2]", 6},
		{"a report that is gone", func(try int) error {
			if try == 2 {
				return fmt.Errorf("keep: %w", ErrGone)
			}
			return nil
		}, 1, "[0] [1]", 3},
		{"more than the limit", between(0, 4), mostWaiting/2 - 1, "[3] [4]", 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var kept []string
				tries := 0
				q := NewQueue(func(_ context.Context, batch []report.Encoded) error {
					defer func() { tries++ }()
					if err := tt.fails(tries); err != nil {
						return err
					}
					var ns []int
					for _, e := range batch {
						ns = append(ns, int(e.StartS))
					}
					kept = append(kept, fmt.Sprint(ns))
					return nil
				}, func(context.Context) {})
				for i := range 5 {
					q.Add(report.Encoded{StartS: float64(i), JSON: make([]byte, tt.size)})
					<-time.After(3100 * time.Millisecond) // no pause ends at this moment
				}
				q.Close()
				assert.Equal(t, fmt.Sprint(kept), "["+tt.want+"]")
				assert.Equal(t, tries, tt.tries, "tried times")
			})
		})
	}
}

// While nothing is stored, the queue reports once per pulse that the process is alive, until the report is gone.
func TestQueueBeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		beats := make(chan struct{}, 10)
		q := NewQueue(func(context.Context, []report.Encoded) error { return ErrGone }, func(context.Context) { beats <- struct{}{} })
		for range 3 {
			<-beats
		}
		q.Add(report.Encoded{})
		synctest.Wait()
		select {
		case <-beats:
			t.Error("a beat for a report that is gone")
		case <-time.After(3 * Pulse):
		}
		q.Close()
	})
}

// Close does not wait for a store that does not answer.
func TestQueueClosesWhileAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		q := NewQueue(func(ctx context.Context, _ []report.Encoded) error {
			if tries++; tries == 1 {
				return errors.New("unavailable")
			}
			<-ctx.Done() // like a network without answers
			return ctx.Err()
		}, func(context.Context) {})
		q.Add(report.Encoded{})
		<-time.After(5 * time.Second)
		before := time.Now()
		q.Close()
		took := time.Since(before)
		assert.True(t, took <= 0 && tries == 2, "closed after %v and %d tries, want at once and 2", took, tries)
	})
}
