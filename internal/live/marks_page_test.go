package live

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestMarks: a run is marked by requests with the token, while it takes marks.
func TestMarks(t *testing.T) {
	t.Parallel()
	s := assert.Value(OpenPage("127.0.0.1:0", NewHub()))(t)
	defer s.Close()
	base, token, _ := strings.Cut(s.URL(), "/#token=")
	var got []string
	end := s.TakeMarks("run1", func(kind, name string, from, to time.Time) (float64, float64, error) {
		waited := time.Duration(0)
		if kind == "heal" {
			waited = mostWaited
		}
		// The bound is the round trip alone: what the sender waited is known.
		length := to.Sub(from)
		assert.True(t, length >= 0 && length <= time.Minute, "it was between %v and %v", from, to)
		ago := time.Since(to)
		assert.True(t, ago >= waited && ago <= waited+time.Minute, "it was at %v, %v ago, want %v", to, ago, waited)
		if kind == "broken" {
			return 0, 0, errors.New("not a kind")
		}
		got = append(got, kind+" "+name)
		return 12.5, 0.25, nil
	})
	post := func(run, token, kind, origin, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/runs/"+run+"/marks", strings.NewReader(body))
		assert.OK(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", kind)
		if origin != "" {
			r.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(r)
		assert.OK(t, err)
		defer res.Body.Close()
		text := assert.Value(io.ReadAll(res.Body))(t)
		return res.StatusCode, string(text)
	}
	const json, fault = "application/json", `{"kind": "fault", "name": " the plug "}`
	for _, tt := range []struct {
		name, run, token, kind, origin, body string
		code                                 int
		want                                 string
	}{
		{"a fault", "run1", token, json, "", fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"of the page itself", "run1", token, json, base, fault, 200, `{"at_s":12.5,"bound_s":0.25,"round_trip_s":`},
		{"that waited", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3600}`, 200, `{"at_s":12.5,"bound_s":0.25`},
		{"to come", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": -1}`, 400, "waited_s is from 0 to 3600 s"},
		{"long ago", "run1", token, json, "", `{"kind": "heal", "name": "the plug", "waited_s": 3601}`, 400, "waited_s is from 0 to 3600 s"},
		{"no token", "run1", "", json, "", fault, 401, "the token is missing or wrong"},
		{"another token", "run1", "0" + token, json, "", fault, 401, "the token is missing or wrong"},
		{"another page", "run1", token, json, "http://elsewhere.invalid", fault, 403, "another page may not do this"},
		{"another run", "run2", token, json, "", fault, 404, "start it with --marks"},
		{"no JSON", "run1", token, json, "", "the plug", 400, "the request must be JSON"},
		{"another type", "run1", token, "text/plain", "", fault, 400, "the request must be JSON"},
		{"much", "run1", token, json, "", `{"name": "` + strings.Repeat("x", mostMark) + `"}`, 400, "the request must be JSON"},
		{"no kind", "run1", token, json, "", `{"kind": "broken", "name": "x"}`, 400, "not a kind"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			code, text := post(tt.run, tt.token, tt.kind, tt.origin, tt.body)
			assert.True(t, code == tt.code && strings.Contains(text, tt.want), "got %d %q, want %d %q", code, text, tt.code, tt.want)
		})
	}
	want := "fault the plug, fault the plug, heal the plug"
	assert.True(t, strings.Join(got, ", ") == want, "the marks are %q, want %q", got, want)
	for i := len(got); i < mostAddress; i++ {
		code, text := post("run1", token, json, "", fault)
		assert.Must(t, code == 200, "mark %d: got %d %q", i+1, code, text)
		post("run1", token, json, "", `{"kind": "broken", "name": "x"}`) // is none, so it does not count
	}
	if code, text := post("run1", token, json, "", fault); code != 429 || !strings.Contains(text, "the run takes at most 16 marks over HTTP from one address, which it has from 127.0.0.1") {
		t.Errorf("more marks than one address may make: got %d %q", code, text)
	}
	end()
	code, _ := post("run1", token, json, "", fault)
	assert.Equal(t, code, 404, "a run that has ended")
	(*Page)(nil).TakeMarks("x", nil)()
}

// TestMarksOfAll: all addresses together have a limit, so that the owner of the run has room.
func TestMarksOfAll(t *testing.T) {
	t.Parallel()
	m, r := new(marks), &marked{from: map[string]int{}}
	for i := range mostRemote {
		assert.OK(t, m.reserve(r, string(rune('a'+i%4))))
	}
	assert.ErrorHas(t, m.reserve(r, "x"), "takes at most 32 marks over HTTP")
	m.release(r, "a")
	assert.OK(t, m.reserve(r, "x"))
}

// TestDayOfThePage: a day of frames, one run after the other, with viewers that come and go, leaves a page with the
// memory that it had after as many runs as it keeps.
func TestDayOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	synctest.Test(t, func(t *testing.T) {
		hub := NewHub()
		var before int64
		const hours, runs = 24, 10 // an hour has ten runs of six minutes
		for hour := range hours {
			for i := range runs {
				id := time.Duration(hour*runs + i).String()
				r := example(t, hub, id, 0, 1)
				v := newViewer(-1)
				ctx, cancel := context.WithCancel(t.Context())
				ended := v.view(ctx, hub, "/runs/"+id+"/events", "")
				for second := 1; second < 360; second++ {
					seconds(r, second, second+1)
					time.Sleep(time.Second)
					v.text()
				}
				if i%2 == 0 {
					r.End(Done{})
				} else {
					r.End(Done{Error: "broken"})
				}
				synctest.Wait()
				cancel()
				<-ended
			}
			if hour == 5 { // 60 runs: it keeps 50
				before = testkit.Heap()
			}
		}
		grown := testkit.Heap() - before
		assert.True(t, grown < 2<<20, "the page has grown by %d KiB in 18 hours", grown>>10)
		hub.Close()
		synctest.Wait()
	})
}

// TestLongRunOfThePage: a run of a day keeps no more of its frames than one of some hours.
func TestLongRunOfThePage(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 86,400 frames, each with three histograms")
	hub := NewHub()
	r := example(t, hub, "day", 0, 1)
	var before int64
	for second := 1; second < 86_400; second++ {
		seconds(r, second, second+1)
		if second == 6*3600 {
			before = testkit.Heap()
		}
	}
	grown := testkit.Heap() - before
	assert.True(t, grown < 2<<20, "a run's frames have grown by %d KiB in 18 hours", grown>>10)
	r.End(Done{})
}

// TestUnreadIsShown: while a run goes on, events that were not read are in the end-to-end times at their age: in the
// terminal, on the page, and in what is exported.
func TestUnreadIsShown(t *testing.T) {
	for _, read := range []uint64{0, 80} {
		times, ages := measure.NewHistogram(), measure.NewHistogram()
		times.RecordN(5*time.Millisecond, read)
		ages.RecordN(4*time.Second, 20)
		s := load.Snapshot{At: time.Second, Phase: measure.Measurement, Left: load.Never}
		s.Interval = measure.Interval{Phase: measure.Measurement, End: time.Second, LagEvents: -1, Counts: measure.Counts{Sent: 100, Acked: 100, Answered: 100, Consumed: read, Unread: 20}}
		s.Interval.EndToEnd, s.Interval.UnreadAges = times, ages
		s.Total = s.Interval.Counts

		st := statusOf(&s, nil)
		if line := st.line(); !strings.Contains(line, "p99 >= 4 s") || !strings.Contains(line, "max >= 4 s") || !strings.Contains(line, "20 unread") {
			t.Errorf("the terminal says %q", line)
		}
		var frames []Frame
		r := NewRecorder("x", Run{}, func(e Event) {
			if e.Frame != nil {
				frames = append(frames, *e.Frame)
			}
		})
		r.Show(s)
		r.End(Done{Totals: measure.Signed(s.Total), Report: "x"})
		f := frames[0]
		assert.True(t, f.EndToEnd.AtLeast > 0 && f.EndToEnd.P99 >= Micros(3990*time.Millisecond) && f.Counts.Unread == 20, "the frame has %+v, %d unread", f.EndToEnd, f.Counts.Unread)
		var all state
		all.add(&s)
		p := all.point(&s)
		found := false
		for _, q := range p.p99 {
			found = found || q.name == "end_to_end" && q.d >= 3990*time.Millisecond
		}
		assert.True(t, found, "the exported p99 are %v", p.p99)
	}
}
