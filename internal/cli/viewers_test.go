//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/standin"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A reader collects the frames that a program writes to descriptor 3.
type reader struct {
	of    string      // the run
	began []*live.Run // all of them
	all   map[string]*live.Series
	done  map[string]*live.Done
	first chan struct{} // a frame came
	last  chan error
}

func readFrames(t *testing.T, cmd *exec.Cmd) *reader {
	t.Helper()
	r, w, err := os.Pipe()
	assert.OK(t, err)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Env = append(cmd.Env, live.FramesVariable+"=3")
	got := &reader{all: map[string]*live.Series{}, done: map[string]*live.Done{}, first: make(chan struct{}, 1), last: make(chan error, 1)}
	t.Cleanup(func() { r.Close(); w.Close() })
	go func() {
		got.last <- live.ReadFrames(r, func(e live.Event) error {
			switch {
			case e.Run != nil:
				got.of = e.ID
				got.began = append(got.began, e.Run)
				got.all[e.ID] = &live.Series{}
			case e.Frame != nil:
				select {
				case got.first <- struct{}{}:
				default:
				}
				return got.all[e.ID].Add(e.Frame)
			case e.Done != nil:
				got.done[e.ID] = e.Done
			}
			return nil
		})
	}()
	return got
}

// The sums of the frames equal the totals of the report, for every way in which a run goes and ends. So do the report's
// other forms. Brokers count for themselves what they took and delivered.
func TestFramesAddUp(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		args      []string
		interrupt bool
	}{
		{name: "warm-up", args: []string{"null://", "--rate", "5k/s", "--warmup", "500ms", "--for", "1s"}},
		{name: "short intervals", args: []string{"null://", "--rate", "5k/s", "--warmup", "130ms", "--for", "1500ms", "--interval", "70ms"}},
		{name: "full speed", args: []string{"kafka://ADDR/full", "--count", "20k"}},
		{name: "closed loop", args: []string{"kafka://ADDR/closed", "--concurrency", "2", "--for", "1s"}},
		{name: "round trip", args: []string{"kafka://ADDR/round", "--op", "roundtrip", "--rate", "2k/s", "--for", "1s"}},
		{name: "interrupted", args: []string{"kafka://ADDR/interrupted", "--rate", "2k/s", "--for", "10m"}, interrupt: true},
		{name: "dropped", args: []string{"null://?delay=100ms", "--rate", "2k/s", "--for", "1s", "--max-in-flight", "10", "--overload", "drop"}},
		{name: "steps", args: []string{"kafka://ADDR/steps", "--shape", "steps(1k/s:500ms,3k/s:500ms)"}},
		{name: "mix", args: []string{"-f", "MIX"}},
		{name: "pipeline", args: []string{"kafka://ADDR/pipe", "--op", "pipeline", "--rate", "1k/s", "--for", "1s"}},
		{name: "transactions", args: []string{"kafka://ADDR/transactions", "--transactions", "--rate", "2k/s", "--for", "1s"}},
		{name: "two clients", args: []string{"kafka://ADDR/library", "--engine", "client", "--clients", "2", "--rate", "2k/s", "--for", "1s"}},
		{name: "repeated", args: []string{"null://", "--rate", "1k/s", "--for", "300ms", "--repeat", "2"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			record, mix := filepath.Join(t.TempDir(), "record.csv"), filepath.Join(t.TempDir(), "mix.yaml")
			var broker *standin.Child
			var fired live.Counts
			if !strings.Contains(strings.Join(tt.args, " "), "null://") {
				broker = child(t, "kafka", "--in-memory", "--record", record)
				assert.OK(t, os.WriteFile(mix, []byte(strings.ReplaceAll(twoParts, "ADDR", broker.Addr())), 0o600))
			}
			args := []string{"run", "--quiet", "--no-calibrate", "--json"}
			for _, a := range tt.args {
				if broker != nil {
					a = strings.NewReplacer("ADDR", broker.Addr(), "MIX", mix).Replace(a)
				}
				args = append(args, a)
			}
			cmd := exec.Command(carronade(t), args...)
			cmd.Env = []string{"CARRONADE_TEST_UNTRUSTED=none"}
			frames := readFrames(t, cmd)
			p := begin(t, cmd)
			cmd.ExtraFiles[0].Close()
			if tt.interrupt {
				testkit.Wait(t, "a frame came", frames.first)
				p.interrupt(t)
			}
			p.end(t)
			assert.OK(t, <-frames.last)
			n := 0
			for in := json.NewDecoder(&p.out); ; n++ {
				var d report.Document
				if err := in.Decode(&d); err == io.EOF {
					break
				} else if err != nil {
					t.Fatalf("%v; it said:\n%s", err, p.said.String())
				}
				var want live.Counts
				for i := range d.Phases {
					want.Add(measure.Signed(d.Phases[i].Totals.Counts))
				}
				s, done := frames.all[d.ID], frames.done[d.ID]
				assert.Must(t, s != nil && done != nil && done.Report == d.ID && done.Headline == d.Headline(),
					"report %s: got %+v as its end", d.ID, done)
				var got, warm live.Counts
				all := s.After(0)
				for i := range all {
					got.Add(all[i].Counts)
					if all[i].Warmup != nil {
						warm.Add(*all[i].Warmup)
					}
				}
				assert.Equal(t, got, want, "sums of the frames, and of the report's phases")
				fired.Add(want)
				sameInAllForms(t, p, &d, all)
				assert.Same(t, done.Band, d.Band(), "the band of the live page, and of the report")
				got.Subtract(warm)
				total := measure.Signed(d.Totals.Counts)
				assert.True(t, got == total, "without the warm-up they add up to\n%+v, the report's totals are\n%+v", got, total)
				if i := len(d.Phases); i > 0 && d.Phases[0].Name == measure.WarmUp && warm != measure.Signed(d.Phases[0].Totals.Counts) {
					t.Errorf("the warm-up's add up to\n%+v, want\n%+v", warm, d.Phases[0].Totals.Counts)
				}
			}
			assert.Must(t, n != 0, "no report; it said:\n%s", p.said.String())
			if broker == nil {
				return
			}
			assert.OK(t, broker.Stop())
			produced, fetched := recorded(t, record)
			assert.True(t, produced >= fired.Acked && produced <= fired.Acked+fired.Unknown,
				"the broker took %d events, the report has %d acked and %d unknown", produced, fired.Acked, fired.Unknown)
			// A read of a pipeline by offsets may have events next to those that it wants.
			assert.True(t, fired.Consumed == fetched || fired.Consumed == 0 || tt.name == "pipeline" && fetched > fired.Consumed, "the broker delivered %d events, the report has %d consumed", fetched, fired.Consumed)
		})
	}
}

// twoParts is a workload of two loads.
const twoParts = `rate: 2k/s
for: 1s
parts:
- {name: small, target: "kafka://ADDR/mix", size: 10, weight: 3}
- {name: large, target: "kafka://ADDR/mix", size: 1000, weight: 1}
`

// recorded are the events that a broker took and acked, and that it delivered, by its record.
func recorded(t *testing.T, path string) (produced, fetched int64) {
	t.Helper()
	rows := assert.Value(csv.NewReader(bytes.NewReader(assert.Value(os.ReadFile(path))(t))).ReadAll())(t)
	at := func(name string) int { return slices.Index(rows[0], name) }
	for _, r := range rows[1:] {
		n, err := strconv.ParseInt(r[at("events")], 10, 64)
		switch {
		case err != nil || r[at("answered_ns")] == "":
		case r[at("kind")] == "produce":
			produced += n
		case r[at("kind")] == "fetch":
			fetched += n
		}
	}
	return produced, fetched
}

// inText are the numbers whose words differ in the text.
var inText = map[string]string{"throughput": "%s", "bytes_per_s": "%s", "cpu_us_per_event": "%s an event"}

// tags are those of a page.
var tags = regexp.MustCompile(`<[^>]*>`)

// sameInAllForms finds every number of the report's tables of fields, and its times, in its JSON, its CSV, its text
// and its page.
func sameInAllForms(t *testing.T, p *process, d *report.Document, frames []live.Frame) {
	t.Helper()
	form := func(name string) string {
		t.Helper()
		cmd := exec.Command(carronade(t), "report", "export", d.ID, "--as", name)
		cmd.Env = p.Env
		return string(assert.Value(cmd.Output())(t, "%s", name))
	}
	var fields map[string]any
	assert.OK(t, json.Unmarshal([]byte(form("json")), &fields))
	totals := fields["totals"].(map[string]any)
	rows := assert.Value(csv.NewReader(strings.NewReader(form("csv"))).ReadAll())(t)
	sum := func(phase, column string) (n float64) {
		t.Helper()
		k := slices.Index(rows[0], column)
		assert.Must(t, k >= 0, "the CSV has no column %s", column)
		for _, r := range rows[1:] {
			if v, err := strconv.ParseFloat(r[k], 64); err == nil && r[slices.Index(rows[0], "phase")] == phase {
				n += v
			}
		}
		return n
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6*max(math.Abs(a), math.Abs(b), 1) }
	report.EachCount(&d.Totals.Counts, func(r report.Row, _ uint64) {
		v, _ := totals[r.Name].(float64)
		of := sum(measure.Measurement, r.Name)
		assert.True(t, v == r.Value && of == r.Value, "%s: %v, in JSON %v, in CSV %v", r.Name, r.Value, v, of)
	})
	within, arrived := sum(measure.Measurement, "within_s"), sum(measure.Measurement, "arrived")
	assert.True(t, near(within, d.Totals.ElapsedS) && near(arrived/within, d.Totals.EventsPerS),
		"CSV: %v of %v s, %v/s, want %v s and %v/s", arrived, within, arrived/within, d.Totals.ElapsedS, d.Totals.EventsPerS)
	for _, x := range d.Measured() {
		if d.Intervals[0].Time(x.Name) == nil && x.Name != "response" {
			continue // intervals have only its histogram
		}
		assert.Equal(t, sum(measure.Measurement, x.Name+"_count"), float64(x.Sum.Count), "values of %s in CSV", x.Name)
	}
	flat := func(s string) string { return strings.Join(strings.Fields(html.UnescapeString(s)), " ") }
	text, page := form("text"), strings.ReplaceAll(html.UnescapeString(form("html")), "\u00a0", " ")
	cmd := exec.Command(carronade(t), "report", "show", d.ID)
	cmd.Env = p.Env
	timesInAllForms(t, d, fields, text, string(assert.Value(cmd.Output())(t, "report show")), page, rows, frames)
	text, page = flat(text), flat(tags.ReplaceAllString(page, " "))
	for _, r := range slices.Concat(d.Counts(), d.Figures(), d.LedgerRows()) {
		if !r.Always && r.Value == 0 {
			continue
		}
		all := r.Label + " " + r.Text()
		assert.True(t, strings.Contains(page, all), "the page has no %q: %s", all, page)
		if label, ok := inText[r.Name]; ok {
			if len(d.Steps) > 1 && label == "%s" {
				continue // the text has the rates of the steps
			}
			all = fmt.Sprintf(label, r.Text())
		}
		assert.True(t, strings.Contains(text, all), "the text has no %q: %s", all, text)
	}
}

// page is the address of a live page, and its token.
var page = regexp.MustCompile(`live page at (http://\S+/)#token=(\w+)`)

// TestLivePage: a viewer that comes late sees the run from its beginning, then each frame
// and the end, and an open page does not delay the exit.
func TestLivePage(t *testing.T) {
	t.Parallel()
	p := startTrusted(t, "run", "null://", "--rate", "1k/s", "--for", "10m", "--interval", "100ms", "--web", "--quiet", "--no-calibrate")
	p.until(t, "live page")
	m := page.FindStringSubmatch(p.said.String())
	assert.Must(t, m != nil, "no address in %s", p.said.String())
	get := func(path string) io.Reader {
		t.Helper()
		q := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, m[1]+"api"+path, nil))(t)
		q.Header.Set("Authorization", "Bearer "+m[2])
		a := assert.Value(http.DefaultClient.Do(q))(t) //nolint:bodyclose // it is closed below
		t.Cleanup(func() { a.Body.Close() })
		return a.Body
	}
	var runs []struct{ ID string }
	for len(runs) == 0 { // it opens the target first
		assert.OK(t, json.NewDecoder(get("/runs")).Decode(&runs))
	}
	read := func(until string, lines *bufio.Reader) live.Frame {
		t.Helper()
		for {
			line := assert.Value(lines.ReadString('\n'))(t, "waiting for %s", until)
			if strings.TrimSpace(line) == until {
				data, _ := lines.ReadString('\n')
				var f live.Frame
				_ = json.Unmarshal([]byte(strings.TrimPrefix(data, "data: ")), &f)
				return f
			}
		}
	}
	first := bufio.NewReader(get("/runs/" + runs[0].ID + "/events"))
	for range 2 {
		read("event: frame", first)
	}
	late := bufio.NewReader(get("/runs/" + runs[0].ID + "/events"))
	f := read("event: frame", late)
	assert.True(t, f.Number == 1 && f.Counts.Offered == 1000, "a late viewer gets first: %+v, want the first second", f)
	p.interrupt(t)
	for _, viewer := range []*bufio.Reader{first, late} {
		read("event: done", viewer)
		read("event: end", viewer)
	}
	p.exits(t, 130)
}

// The page of a short run stays after its end, until Ctrl-C. The exit code is that of the run.
func TestWebLinger(t *testing.T) {
	t.Parallel()
	p := startTrusted(t, "run", "null://", "--rate", "1k/s", "--for", "300ms", "--web", "--web-linger", "10m", "--quiet", "--no-calibrate")
	p.until(t, "the live page stays at")
	m := page.FindStringSubmatch(p.said.String())
	assert.Must(t, m != nil, "no address in %s", p.said.String())
	get := func(path string) string {
		t.Helper()
		q := assert.Value(http.NewRequestWithContext(t.Context(), http.MethodGet, m[1]+"api"+path, http.NoBody))(t)
		q.Header.Set("Authorization", "Bearer "+m[2])
		a := assert.Value(http.DefaultClient.Do(q))(t) //nolint:bodyclose // it is closed below
		defer a.Body.Close()
		text, _ := io.ReadAll(a.Body)
		return string(text)
	}
	if id := runID.FindStringSubmatch(get("/runs")); id == nil || !strings.Contains(get("/runs/"+id[1]+"/series"), `"headline"`) {
		t.Errorf("the page does not show the end of the run: %s", get("/runs"))
	}
	p.interrupt(t)
	p.exits(t, 0)
}

// Each trial says which it is, what it offers, the limits, also the one that a search has without any, and
// what the trials before it said of the ceiling. A run with steps has their starts.
func TestFramesOfASearch(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(carronade(t), "find", "null://?delay=1ms", "--from", "1k/s", "--to", "4k/s", "--budget", "3m", "--no-calibrate")
	cmd.Env = []string{"CARRONADE_TEST_UNTRUSTED=none"}
	frames := readFrames(t, cmd)
	p := begin(t, cmd)
	cmd.ExtraFiles[0].Close()
	p.until(t, ", at most ") // a trial of which something is known before
	p.interrupt(t)
	p.end(t)
	assert.OK(t, <-frames.last)
	assert.Must(t, len(frames.began) >= 2, "got %d trials, want more; it said:\n%s", len(frames.began), p.said.String())
	known := false
	for i, run := range frames.began {
		assert.Must(t, run.Search != nil && run.Search.Trial == i+1 && run.Search.Role != "" && run.Search.Load != "",
			"trial %d: got %+v", i+1, run.Search)
		assert.True(t, len(run.Limits) == 1 && run.Limits[0].Text == "p99 < 1 s" && run.Limits[0].Value == 1,
			"trial %d: limits %+v", i+1, run.Limits)
		assert.True(t, i != 0 || run.Search.Holds+run.Search.Fails <= 0, "the first trial knows of the ceiling: %+v", run.Search)
		known = known || run.Search.Holds+run.Search.Fails > 0
	}
	assert.True(t, known, "no trial says what is known of the ceiling")
	cmd = exec.Command(carronade(t), "run", "null://", "--shape", "steps(1k/s:1s,2k/s:1s)", "--warmup", "1s", "--quiet", "--no-calibrate")
	cmd.Env = []string{"CARRONADE_TEST_UNTRUSTED=none"}
	frames = readFrames(t, cmd)
	p = begin(t, cmd)
	cmd.ExtraFiles[0].Close()
	p.end(t)
	assert.OK(t, <-frames.last)
	var marks []string
	for _, f := range frames.all[frames.of].After(0) {
		for _, m := range f.Marks {
			marks = append(marks, fmt.Sprintf("%v %s", time.Duration(m.At), m.Text))
		}
	}
	for _, want := range []string{"1s 1,000/s", "2s 2,000/s"} {
		assert.True(t, slices.Contains(marks, want), "no mark %q in %q; it said:\n%s", want, marks, p.said.String())
	}
}

// A reader that has gone, or that never reads, changes neither the report nor the exit code.
func TestFramesWithoutReader(t *testing.T) {
	t.Parallel()
	for _, reads := range []bool{false, true} {
		r, w, err := os.Pipe()
		assert.OK(t, err)
		cmd := exec.Command(carronade(t), "run", "null://", "--rate", "1k/s", "--for", "300ms", "--no-calibrate", "--quiet")
		cmd.ExtraFiles = []*os.File{w}
		cmd.Env = []string{live.FramesVariable + "=3", "CARRONADE_TEST_UNTRUSTED=none"}
		if !reads {
			r.Close()
		}
		p := begin(t, cmd)
		w.Close()
		if code := p.end(t); code != 0 || !strings.Contains(p.out.String(), "of 1 k/s acked") {
			t.Errorf("reads %t: exit %d:\n%s", reads, code, p.said.String())
		}
		assert.True(t, strings.Contains(p.said.String(), "warning: the reader of CARRONADE_FRAMES") != reads,
			"reads %t: it said:\n%s", reads, p.said.String())
		r.Close()
	}
}

var runID = regexp.MustCompile(`"id": *"(\w+)"`)
