package system

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/conn"
	"carronade/internal/host"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func figures(list []measure.Figure) map[string]float64 {
	out := make(map[string]float64)
	for _, f := range list {
		name := f.Name
		if f.Unit != "" {
			name += " [" + f.Unit + "]"
		}
		out[name] = f.Value
	}
	return out
}

// A fakeServer answers every request the same.
type fakeServer struct {
	status int
	body   string
	seen   *http.Request
}

func answering(t testing.TB) (*fakeServer, string) {
	t.Helper()
	answer := &fakeServer{status: 200}
	s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		answer.seen = r
		w.WriteHeader(answer.status)
		fmt.Fprint(w, answer.body)
	})
	return answer, s.URL
}

func TestVars(t *testing.T) {
	tests := []struct {
		name, body string
		filter     []string
		want       map[string]float64
		err        string
	}{
		{"flat", `{"a":1,"b":2.5,"c":"text","d":true,"e":null}`, nil, map[string]float64{"a": 1, "b": 2.5, "d": 1}, ""},
		{"nested", `{"libbeat":{"output":{"events":{"active":3}},"x":[1,{"y":2}],"z":4},"after":5}`, nil, map[string]float64{"libbeat.output.events.active": 3, "libbeat.z": 4, "after": 5}, ""},
		{"filtered", `{"memstats":{"HeapAlloc":7,"Sys":8,"PauseNs":[1,2]},"cmdline":["x"],"n":1}`, []string{"memstats.Heap*, n"}, map[string]float64{"memstats.HeapAlloc": 7, "n": 1}, ""},
		{"left out", `{"memstats":{"HeapAlloc":7},"n":1}`, []string{"!memstats.*"}, map[string]float64{"n": 1}, ""},
		{"empty", `{}`, nil, map[string]float64{}, ""},
		{"empty inside", `{"a":{},"b":1}`, nil, map[string]float64{"b": 1}, ""},
		{"not JSON", `<html>`, nil, nil, "not JSON"},
		{"a list", `[1]`, nil, nil, "not a JSON object"},
		{"cut", `{"a":1,`, nil, nil, "is truncated"},
		{"nothing", ``, nil, nil, "not JSON"},
		{"too deep", strings.Repeat(`{"a":`, 100) + "1" + strings.Repeat("}", 100), nil, map[string]float64{}, ""},
	}
	answer, url := answering(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			answer.body = test.body
			s := assert.Value(expvarSource(url+"/debug/vars", nil, newFilter(test.filter)))(t)
			defer s.Close()
			got, err := s.Figures(t.Context())
			if test.err != "" {
				assert.ErrorHas(t, err, test.err)
				return
			}
			assert.OK(t, err)
			assert.Same(t, figures(got), test.want)
		})
	}
}

const metricsText = `# HELP http_requests_total Requests.
# TYPE http_requests_total counter
http_requests_total{code="200",path="/a\"} b"} %d 1395066363000
# TYPE queue gauge
queue 4
queue_max{} 9
# TYPE nothing gauge
nothing NaN
most +Inf
# TYPE took histogram
took_bucket{le="0.1"} %d
took_bucket{le="+Inf"} %[1]d
took_sum %[1]d
took_count %[1]d
# TYPE lag summary
lag{quantile="0.5"} 3
lag_count %[1]d
# TYPE made counter
made_total %[1]d
made_created 1.7e9
not a sample
{}
broken{a="
`

func TestMetrics(t *testing.T) {
	answer, url := answering(t)
	answer.body = fmt.Sprintf(metricsText, 10, 10)
	s, err := prometheusSource(url+"/metrics", nil, newFilter(nil))
	assert.OK(t, err)
	defer s.Close()
	at := time.Unix(1000, 0)
	s.now = func() time.Time { return at }
	got := assert.Value(s.Figures(t.Context()))(t)
	assert.Same(t, figures(got), map[string]float64{"queue": 4, "queue_max": 9}, "first")
	at = at.Add(2 * time.Second)
	answer.body = fmt.Sprintf(metricsText, 16, 10)
	got = assert.Value(s.Figures(t.Context()))(t)
	want := map[string]float64{
		"queue": 4, "queue_max": 9, `http_requests_total{code="200",path="/a\"} b"} [/s]`: 3,
		"took_sum [/s]": 3, "took_count [/s]": 3, "lag_count [/s]": 3, "made_total [/s]": 3,
	}
	assert.Same(t, figures(got), want, "second")
	at = at.Add(time.Second)
	answer.body = fmt.Sprintf(metricsText, 2, 10)
	if got, err = s.Figures(t.Context()); err != nil || figures(got)["made_total [/s]"] != 2 {
		t.Errorf("got %v, %v after a restart, want the count since then", figures(got), err)
	}
}

func TestMetricsNamed(t *testing.T) {
	answer, url := answering(t)
	answer.body = fmt.Sprintf(metricsText, 10, 10)
	s := assert.Value(prometheusSource(url, nil, newFilter([]string{"lag", "took_bucket{*0.1*}", "http_*"})))(t)
	at := time.Unix(1000, 0)
	s.now = func() time.Time { return at }
	assert.Value(s.Figures(t.Context()))(t)
	at = at.Add(time.Second)
	got := assert.Value(s.Figures(t.Context()))(t)
	want := map[string]float64{`lag{quantile="0.5"}`: 3, `took_bucket{le="0.1"} [/s]`: 0, `http_requests_total{code="200",path="/a\"} b"} [/s]`: 0}
	assert.Same(t, figures(got), want)
	answer.body = "<html>no metrics</html>"
	_, err := s.Figures(t.Context())
	assert.True(t, err != nil && strings.Contains(err.Error(), "no metrics in Prometheus's"), "got %v, want no metrics", err)
}

// TestStages: what the system counts of the events since the first reading, whatever is selected, with all labels, and
// over a restart. It is there from the first counter on.
func TestStages(t *testing.T) {
	answer, url := answering(t)
	s := assert.Value(prometheusSource(url, nil, newFilter([]string{"other"})))(t)
	defer s.Close()
	s.stages = []stage{{Stage: measure.Stage{Name: "accepted", Metrics: "in_*"}}, {Stage: measure.Stage{Name: "exported", Metrics: "out_*"}}}
	for _, tt := range []struct {
		body string
		want map[string]float64
	}{
		{"# TYPE in_x counter\nin_x{a=\"1\"} 5\nin_x{a=\"2\"} 6\n", map[string]float64{"accepted [events]": 0}},
		{"# TYPE in_x_total counter\nin_x_total{a=\"1\"} 10\nin_x_total{a=\"2\"} 7\n# TYPE out_y counter\nout_y 4\n# TYPE out_size gauge\nout_size 9\n", map[string]float64{"accepted [events]": 6, "exported [events]": 4}},
		{"# TYPE in_x counter\nin_x 2\n# TYPE out_y counter\nout_y 1\n", map[string]float64{"accepted [events]": 8, "exported [events]": 5}},
	} {
		answer.body = tt.body
		got := assert.Value(s.Figures(t.Context()))(t)
		assert.Same(t, figures(got), tt.want, "figures")
	}
}

// TestStagesUnknown: a source whose first answer was invalid does not count what came before the run as the run's.
func TestStagesUnknown(t *testing.T) {
	answer, url := answering(t)
	s := assert.Value(prometheusSource(url, nil, newFilter(nil)))(t)
	defer s.Close()
	s.stages = []stage{{Stage: measure.Stage{Name: "accepted", Metrics: "in_*"}}}
	answer.body = "<html>starting</html>"
	_, err := s.Figures(t.Context())
	assert.True(t, err != nil, "an invalid answer was taken")
	for range 2 {
		answer.body = "# TYPE in_x counter\nin_x 100\n"
		for _, f := range assert.Value(s.Figures(t.Context()))(t) {
			assert.True(t, !f.Stage, "a count of %v since the run began", f.Value)
		}
	}
}

// TestRedirect: a source does not connect to where an answer points, nor to an address that is not allowed.
func TestRedirect(t *testing.T) {
	asked := false
	elsewhere := testkit.HTTP(t, func(http.ResponseWriter, *http.Request) { asked = true })
	here := testkit.HTTP(t, http.RedirectHandler(elsewhere.URL, http.StatusFound).ServeHTTP)
	s, err := prometheusSource(here.URL, nil, newFilter(nil))
	assert.OK(t, err)
	_, err = s.Figures(t.Context())
	assert.ErrorHas(t, err, "302")
	conn.Restrict(func(addr string) error { return conn.NotAllowed(errors.New("not allowed: "+addr), "") })
	defer conn.Restrict(nil)
	s = assert.Value(prometheusSource(elsewhere.URL, nil, newFilter(nil)))(t)
	_, err = s.Figures(t.Context())
	assert.ErrorHas(t, err, "not allowed: ")
	assert.True(t, !asked, "the other server was asked")
}

func TestSourceFails(t *testing.T) {
	for _, bad := range []string{"", "127.0.0.1:1", "ftp://h/", "http://", "http://u:" + canary + "@[::", "http://u:" + canary + "@h:port/"} {
		s, err := expvarSource(bad, nil, filter{})
		assert.True(t, err != nil && !strings.Contains(err.Error(), canary), "%q: got %v, %v, want an error without the login", bad, s, err)
	}
	answer, url := answering(t)
	s, err := expvarSource(strings.Replace(url, "http://", "http://me:"+canary+"@", 1), http.Header{"authorization": {"ApiKey other-" + canary}}, filter{})
	assert.OK(t, err)
	assert.True(t, !strings.Contains(s.URL(), canary), "got the URL %s, which shows the login", s.URL())
	answer.body = "{}"
	if _, err := s.Figures(t.Context()); err != nil || answer.seen.Header.Get("Authorization") != "ApiKey other-"+canary {
		t.Errorf("got %v, the system got %q, want the header", err, answer.seen.Header)
	}
	answer.status = 403
	if _, err := s.Figures(t.Context()); err == nil || !strings.Contains(err.Error(), "403 Forbidden") || strings.Contains(err.Error(), canary) {
		t.Errorf("got %v, want 403 without the login", err)
	}
	answer.status, answer.body = 200, `{"a":"`+strings.Repeat("x", mostSourceBytes+1)+`"}`
	_, err = s.Figures(t.Context())
	assert.True(t, err != nil && strings.Contains(err.Error(), "larger than"), "got %v, want it too large", err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = s.Figures(ctx)
	assert.True(t, err != nil && !strings.Contains(err.Error(), canary), "got %v, want it canceled, without the login", err)
	if got := s.Warnings(); len(got) != 1 || !strings.Contains(got[0], "3 of 4 requests had no answer") || strings.Contains(got[0], canary) {
		t.Errorf("got %q, want one warning of 3 failures", got)
	}
}

func TestSourceIsBounded(t *testing.T) {
	answer, url := answering(t)
	var b strings.Builder
	b.WriteString("# TYPE c counter\n")
	for i := range mostSourceFigures + 50 {
		fmt.Fprintf(&b, "g_%d 1\n", i)
		fmt.Fprintf(&b, "c{n=\"%d\"} 1\n", i)
	}
	answer.body = b.String()
	s := assert.Value(prometheusSource(url, nil, filter{}))(t)
	for range 3 {
		got, err := s.Figures(t.Context())
		assert.True(t, err == nil && len(got) <= mostSourceFigures, "got %d figures, %v, want at most %d", len(got), err, mostSourceFigures)
	}
	assert.True(t, len(s.before) <= mostSourceFigures, "%d counters are remembered, want at most %d", len(s.before), mostSourceFigures)
	got := s.Warnings()
	assert.True(t, len(got) == 1 && strings.Contains(got[0], "metrics beyond the limit of 200"), "got %q, want a warning", got)
}

func TestFilter(t *testing.T) {
	for _, test := range []struct {
		pattern, name string
		want          bool
	}{
		{"a", "a", true},
		{"a", "ab", false},
		{"a*", "ab", true},
		{"*b", "ab", true},
		{"*a*b*", "xaxbx", true},
		{"*a*b*", "xbxa", false},
		{"", "anything", true},
		{"up", `up{job="x"}`, true},
		{`up{*"x"*}`, `up{job="x"}`, true},
		{"u", `up{job="x"}`, false},
		{"**", "", true},
		{"a*a*a*a*a*b", strings.Repeat("a", 100), false},
		{"!a", "a", false},
		{"!a", "b", true},
		{"a*,!ab", "ab", false},
	} {
		assert.Equal(t, newFilter([]string{test.pattern}).Selects(test.name), test.want, "%q selects %q", test.pattern, test.name)
	}
}

func FuzzSources(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,{"c":2}],"d":3}}`))
	f.Add([]byte(metricsText))
	f.Add([]byte("[1.0s][info][gc] GC(0) Pause Young (Normal) 24M->4M(256M) 2.345ms\n"))
	f.Fuzz(func(_ *testing.T, b []byte) {
		collect := func(string, float64, bool) {}
		_ = expvar(b, collect)
		_ = prometheus(filter{})(b, collect)
		pause(b)
	})
}

// The branch of a revision that several contain is the default branch, else the one whose head is nearest.
func TestBranchOfARevision(t *testing.T) {
	upstream := project(t)
	first := sh(t, upstream, "rev-parse", "HEAD")
	sh(t, upstream, "checkout", "--quiet", "-b", "feature/x")
	second := commit(t, upstream, "second")
	sh(t, upstream, "checkout", "--quiet", "-b", "release")
	third := commit(t, upstream, "third")
	sh(t, upstream, "branch", "also-release")
	sh(t, upstream, "checkout", "--quiet", "-b", "later")
	commit(t, upstream, "fourth")
	sh(t, upstream, "checkout", "--quiet", "--detach")
	lost := commit(t, upstream, "lost")
	sh(t, upstream, "tag", "lost")
	trunk := filepath.Join(t.TempDir(), "trunk") // a clone whose remote has another default branch, and no local main
	sh(t, upstream, "checkout", "--quiet", "release")
	sh(t, t.TempDir(), "clone", "--quiet", upstream, trunk)
	for _, tt := range []struct {
		name, dir, revision, given, want string
	}{
		{"the default branch contains it", upstream, first, "", "main"},
		{"the head of one, in others", upstream, second, "", "feature/x"},
		{"the head of two", upstream, third, "", "also-release"},
		{"in none", upstream, lost, "", ""},
		{"given", upstream, first, "mine", "mine"},
		{"the remote's default branch", trunk, first, "", "release"},
		{"a remote branch", trunk, sh(t, upstream, "rev-parse", "later"), "", "later"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := assert.Value(MakeBuild(t.Context(), BuildOrder{Dir: tt.dir, Revision: tt.revision, Branch: tt.given, Cache: t.TempDir()}))(t)
			b.Release()
			assert.True(t, b.Branch == tt.want && b.Revision == tt.revision,
				"got %.12s of %q, want %.12s of %q", b.Revision, b.Branch, tt.revision, tt.want)
			has := b.Map()["branch"]
			assert.True(t, tt.want == "" || has == tt.want, "got the fact %v, want %q", has, tt.want)
		})
	}
}

// A build whose command depends on the branch is made once for each branch; another is shared.
func TestBuildOfAnotherBranch(t *testing.T) {
	t.Setenv(host.OwnEnv+"HEY_APM_1", canary)
	dir, cache := project(t), t.TempDir()
	for _, tt := range []struct {
		command string
		want    string // what the build of the second branch wrote
	}{
		{"echo {branch} >out", "second"},
		{`echo "$CARRONADE_BRANCH" >out`, "second"},
		{"env >out", "first"},
	} {
		var text []byte
		for _, branch := range []string{"first", "second"} {
			b, err := MakeBuild(t.Context(), BuildOrder{Dir: dir, Branch: branch, Command: tt.command, Cache: cache})
			assert.OK(t, err)
			text, err = os.ReadFile(filepath.Join(b.Tree, "out"))
			b.Release()
			assert.OK(t, err)
		}
		got := string(text)
		assert.True(t, strings.Contains(got, tt.want) && !strings.Contains(got, canary), "%s: got %q, want %q", tt.command, got, tt.want)
	}
}

// A revision in very many branches needs few calls of git, also of one that counts the commits of one branch at a time.
func TestBranchOfManyBranches(t *testing.T) {
	git := testkit.Program(t, "git")
	dir := project(t)
	first := sh(t, dir, "rev-parse", "HEAD")
	sh(t, dir, "checkout", "--quiet", "-b", "near")
	commit(t, dir, "second")
	sh(t, dir, "checkout", "--quiet", "-b", "far")
	commit(t, dir, "third")
	far := sh(t, dir, "rev-parse", "HEAD")
	for i := range 300 {
		write(t, filepath.Join(dir, ".git", "refs", "heads", fmt.Sprintf("b%03d", i)), far+"\n")
	}
	sh(t, dir, "branch", "--quiet", "-D", "main")
	// This git answers %(ahead-behind) if it is new, else it fails as an old one does.
	for _, isNew := range []bool{false, true} {
		bin, calls := t.TempDir(), filepath.Join(t.TempDir(), "calls")
		script := "#!/bin/sh\necho call >>'" + calls + "'\ncase \"$*\" in *ahead-behind*)\n"
		if isNew {
			script += "echo 'refs/heads/near 1 0'; echo 'refs/heads/far 2 0'; exit 0;;\nesac\n"
		} else {
			script += "echo 'fatal: unknown field name: ahead-behind' >&2; exit 128;;\nesac\n"
		}
		script += "exec '" + git + "' \"$@\"\n"
		assert.OK(t, os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o755))
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		got := branchWith(t.Context(), dir, dir, first)
		text := assert.Value(os.ReadFile(calls))(t)
		n := strings.Count(string(text), "call")
		assert.True(t, n <= 60 && (!isNew || n <= 5) && (isNew || got != "") && (!isNew || got == "near"), "new: %v: got %q after %d calls", isNew, got, n)
	}
}

// blockedPrinter is a printer that shows a first line, and nothing else until release is called.
func blockedPrinter() (p *printer, shown *[]string, release func()) {
	block := make(chan struct{})
	shown = new([]string)
	p = newPrinter(func(line string) { <-block; *shown = append(*shown, line) })
	p.add("line 0")
	synctest.Wait() // it is being shown
	return p, shown, func() { close(block) }
}

// A system does not wait until its output is shown: what comes too fast is left out, and its place says so.
func TestPrinterNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shown, release := blockedPrinter()
		for i := range queuedLines + 3 {
			p.add(fmt.Sprint("line ", i+1))
		}
		release()
		synctest.Wait()
		p.add("later")
		p.close()
		p.close()
		p.add("after the end")
		want := []string{fmt.Sprint("line ", queuedLines), "3 lines not shown", "later"}
		if got := (*shown)[max(0, len(*shown)-3):]; len(*shown) != queuedLines+3 || !slices.Equal(got, want) {
			t.Errorf("got %d lines, the last %q, want %q", len(*shown), got, want)
		}
	})
}

// Its end is not waited for if showing takes too long; the last lines are counted, too.
func TestPrinterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, shown, release := blockedPrinter()
		for range queuedLines + 1 {
			p.add("line")
		}
		p.close()
		assert.Equal(t, len(*shown), 0, "lines shown")
		release()
		<-p.done
		assert.Equal(t, (*shown)[len(*shown)-1], "1 line not shown", "at the end")
	})
	(*printer)(nil).close()
}
