package export

import (
	"bytes"
	"encoding/csv"
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/internal/layout"
	"carronade/internal/page"
	"carronade/internal/report"
	"carronade/internal/verdict/find"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// measured is a report with this many intervals of a second.
func measured(id string, seconds int, seed uint64) *report.Document {
	r := rand.New(rand.NewPCG(seed, 1))
	d := &report.Document{
		Schema: report.Schema, ID: id, Target: "kafka://127.0.0.1:9092/t", Op: "roundtrip", Mode: load.OpenLoop,
		StartedAt: time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC),
		Settings:  []report.Setting{{Name: "rate", Value: "1k/s"}, {Name: "seed", Value: "1", Default: true}},
		Trust:     measure.Trust{OK: true}, Steady: measure.Steady{Known: true, OK: true, Text: "it was"},
		Totals: report.Totals{RateOf: report.RateAcked, ElapsedS: float64(seconds), EventsPerS: 990, Counts: measure.Counts{Offered: 1000, Sent: 1000, Acked: 990}},
		Phases: []report.Phase{{Name: "measurement", EndS: float64(seconds)}},
	}
	overall := measure.NewHistogram()
	rss, cpu := report.Gauge{From: "system", Name: "RSS", Unit: "bytes"}, report.Gauge{From: "system", Name: "CPU", Unit: "cores"}
	for i := range seconds {
		iv := report.Interval{
			Phase: "measurement", StartS: float64(i), EndS: float64(i + 1), InFlight: uint64(10 + r.IntN(7)),
			Counts:     measure.Counts{Offered: 1000, Sent: 1000, Acked: 980 + uint64(r.IntN(20)), Failed: uint64(r.IntN(3)), Bytes: 100_000, WireBytes: 101_000},
			Statuses:   measure.Statuses{{Code: 202, Batches: 99, Events: 990}, {Code: 503, Batches: uint64(r.IntN(4)), Events: 10}},
			Generator:  report.Usage{CPUS: r.Float64(), RSSBytes: 40 << 20, GCPauseMaxUS: 80 * r.Float64()},
			Histograms: map[string]string{},
		}
		h := measure.NewHistogram()
		for range 100 {
			h.Record(time.Duration(50e3 * (1 + r.ExpFloat64()*float64(1+i%50))))
		}
		text, s := h.EncodeHDR(), measure.Summarize(h, nil, nil)
		iv.Histograms["response"], iv.Histograms["service"], iv.Histograms["end_to_end"] = text, text, text
		iv.Response, iv.Service, iv.EndToEnd, iv.SendDelay = s, s, s, s
		overall.Merge(h)
		rss.Points = append(rss.Points, report.Point{AtS: float64(i) + 0.99, Value: float64(100<<20 + i<<10)})
		cpu.Points = append(cpu.Points, report.Point{AtS: float64(i) + 0.99, Value: r.Float64()})
		d.Intervals = append(d.Intervals, iv)
	}
	s := measure.Summarize(overall, nil, nil)
	d.Response, d.Service, d.EndToEnd, d.SendDelay = s, s, s, s
	d.Gauges = []report.Gauge{rss, cpu}
	return d
}

// hostile is external text that would be harmful if it were not escaped.
const hostile = `</script></title></style><script>globalThis.harmed=1</script><img src=x onerror="globalThis.harmed=2">' " & <!-- ]]>`

// hostileReport has that text in every text of a report.
func hostileReport() *report.Document {
	d := measured("nasty", 8, 7)
	d.ID, d.Hash, d.Version, d.RunID, d.Target, d.Op, d.Note = hostile, hostile, hostile, hostile, hostile, hostile, hostile
	d.Mode, d.Stopped, d.Partial = load.Mode(hostile), load.Reason(hostile), true
	d.Labels = map[string]string{hostile: hostile}
	d.Trust = measure.Trust{Reasons: []string{hostile}, Notes: []string{hostile}}
	d.Freezes = report.Freezes{Count: 1, Longest: []report.Freeze{{AtS: 3, LengthS: 0.5, Who: hostile, Cause: hostile}}}
	d.Steady.Text, d.Totals.RateOf = hostile, hostile
	d.Checks = []report.Check{{Name: hostile, Text: hostile}, {Name: hostile, OK: true, Text: hostile}}
	d.Problems, d.Warnings = []string{hostile}, []string{hostile}
	d.Settings = []report.Setting{{Name: hostile, Value: hostile}}
	d.Failures = []measure.Failure{{Class: hostile, Text: hostile, Events: 3, Batches: 1}}
	d.Classes = map[string]uint64{hostile: 3}
	d.Intervals[4].Classes.Add(hostile, 4, 1)
	d.Gauges = append(d.Gauges, report.Gauge{From: hostile, Name: hostile, Unit: hostile, Points: []report.Point{{AtS: 1, Value: 2}, {AtS: 2, Value: 3}}})
	d.Phases = append(d.Phases, report.Phase{Name: hostile, StartS: 7, EndS: 8})
	d.System = &report.System{Facts: map[string]any{"command": hostile, "branch": hostile, hostile: hostile}, Died: true, Exit: hostile, LastLines: []string{hostile}}
	d.Facts, d.HostText = map[string]any{hostile: hostile}, hostile
	d.Host = map[string]any{"os": hostile, "name": hostile, "cores": 2, "disks": []any{map[string]any{"name": hostile, "model": hostile}}}
	d.Hosts = []any{d.Host}
	d.Attachments = []report.Attachment{{Name: hostile, Text: hostile}}
	return d
}

// hostileReports are n reports, of which the first is hostile.
func hostileReports(n int) []*report.Document {
	out := []*report.Document{hostileReport()}
	for len(out) < n {
		out = append(out, measured("b", 8, 1))
	}
	return out
}

func pageWritten(t testing.TB, ds ...*report.Document) string {
	t.Helper()
	var b bytes.Buffer
	assert.OK(t, writePage(&b, ds...))
	return b.String()
}

// spaced is a page with blanks in place of those at which no line ends.
func spaced(page string) string { return strings.ReplaceAll(page, "\u00a0", " ") }

func file(t testing.TB, ds ...*report.Document) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "report.html")
	assert.OK(t, os.WriteFile(path, []byte(pageWritten(t, ds...)), 0o600))
	return path
}

var tagPattern = regexp.MustCompile(`<(script|img|iframe|object|embed|link|base|form|meta|style)\b[^>]*>`)

// The page contains only the program's elements, none of which runs or loads anything else.
func TestExternalTextIsEscaped(t *testing.T) {
	for _, c := range []struct {
		name string
		ds   []*report.Document
	}{{"one", []*report.Document{hostileReport()}}, {"several", []*report.Document{hostileReport(), measured("b", 8, 1)}}} {
		t.Run(c.name, func(t *testing.T) {
			got := pageWritten(t, c.ds...)
			count := map[string]int{}
			for _, m := range tagPattern.FindAllStringSubmatch(strings.ReplaceAll(got, script(), ""), -1) {
				count[m[1]]++
			}
			for name, want := range map[string]int{"script": 2, "style": 1, "link": 1, "meta": 5, "img": 0, "iframe": 0, "object": 0, "embed": 0, "base": 0, "form": 0} {
				assert.Equal(t, count[name], want, "elements %s", name)
			}
			assert.True(t, !strings.Contains(got, " style=") && !strings.Contains(strings.ReplaceAll(got, script(), ""), " onerror=\""),
				"an attribute that the policy forbids")
		})
	}
}

// Characters that make a text unreadable or misleading are replaced, in the page and in its
// data. The program's own style and script have none: their hashes would not match.
func TestReadable(t *testing.T) {
	d := measured("a", 20, 1)
	d.Target, d.Note = "a\u202eb\x1bc", "a\xffb"
	d.Phases = append(d.Phases, report.Phase{Name: "a\u2066b", StartS: 7, EndS: 8})
	got := spaced(pageWritten(t, d))
	for _, bad := range []string{"\u202e", "\u2066", "\x1b", "\xff"} {
		assert.True(t, !strings.Contains(got, bad), "the page has %q", bad)
	}
	want := "a\uFFFDb\uFFFDc"
	assert.True(t, strings.Contains(got, want), "the page has no %q", want)
	for name, s := range map[string]string{"style": page.Style(), "script": script()} {
		assert.True(t, strings.Contains(got, s), "the page's %s is changed", name)
	}
}

// The page refers to no other source.
func TestNoExternalReferences(t *testing.T) {
	got := pageWritten(t, measured("a", 20, 1))
	for _, m := range regexp.MustCompile(`(?:\s(?:src|href)=|url\()["']?([^"')> ]*)`).FindAllStringSubmatch(got, -1) {
		if u := m[1]; u != "" && !strings.HasPrefix(u, "#") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "'") {
			t.Errorf("the page refers to %q", u)
		}
	}
	assert.True(t, strings.Contains(got, `content="default-src &#39;none&#39;; script-src &#39;sha256-`), "the page has no policy")
}

// The page without data is far below a mebibyte; a run of an hour adds only data.
func TestSizes(t *testing.T) {
	testkit.Need(t, "a second")
	const bound = 1 << 20
	got := len(pageWritten(t, measured("a", 3, 1)))
	assert.True(t, got <= bound/4, "a page of three seconds: got %d bytes, want at most %d", got, bound/4)
	hour := pageWritten(t, measured("a", 3600, 1))
	begin := strings.Index(hour, `<script type="application/json"`)
	end := begin + strings.Index(hour[begin:], "</script>")
	got = len(hour) - (end - begin)
	assert.True(t, got <= bound, "a page of an hour without the data: got %d bytes, want at most %d", got, bound)
	t.Logf("an hour: %d bytes, of which data %d", len(hour), end-begin)
}

func TestWriteErrors(t *testing.T) {
	err := writePage(io.Discard)
	assert.True(t, errors.Is(err, errNothing), "a page without reports: got %v, want %v", err, errNothing)
	want := errors.New("full")
	err = writePage(broken{want}, measured("a", 3, 1))
	assert.True(t, errors.Is(err, want), "a full disk: got %v, want %v", err, want)
	assert.True(t, strings.Contains(pageWritten(t, &report.Document{}), "</html>"), "a page of an empty report is incomplete")
}

type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// The numbers are accessible without a script and to screen readers.
func TestNumbersWithoutScript(t *testing.T) {
	got := pageWritten(t, measured("a", 20, 1))
	assert.Has(t, got,
		`<html lang="en">`, `<a class="skip" href="#pictures">`, `role="img"`, `<th scope="col">response</th>`,
		`<th scope="row">p99.9</th>`, "The report as text", "<desc id=\"p-throughput-d\">", `aria-label="Pictures"`)
}

// Freezes of the generator are in the verdicts, in a list and, once, in the key. Without freezes the page does not mention them.
func TestFreezes(t *testing.T) {
	d := measured("a", 20, 1)
	if got := pageWritten(t, d); strings.Contains(got, "froze") || strings.Contains(got, "Freezes") {
		t.Error("there was no freeze, but the page mentions it")
	}
	d.Stall = report.Stall{LongestS: 2, LongestAtS: 8, Count: 2, Spans: []report.Span{{AtS: 8, LengthS: 2}, {AtS: 12, LengthS: 0.5}}}
	d.Freezes = report.Freezes{Count: 12, TotalS: 1.2, Longest: []report.Freeze{
		{AtS: 8.2, LengthS: 1, Who: "process", Cause: "stopped and continued"}, {AtS: 15, LengthS: 0.02, Who: "sending thread"},
	}}
	got := spaced(pageWritten(t, d))
	assert.Has(t, got,
		`<li class="remark"><b>freezes</b> 12, 1.2 s of the measurement; longest 1 s (at 8.2 s): the process, stopped and continued`,
		"<summary>Freezes of the generator (the 2 longest of 12)</summary>",
		`<td data-of="cause">sending thread</td>`, `<td data-of="why">stopped and continued</td>`, `<li class="freeze"><b>generator froze</b> this machine`, `<li class="stall"><b>stall</b> the system`,
		`[8.2,9.2,"",2]`, `[8,10,"",1]`, `[12,12.5,"",1]`, "Stalls of the system (2)", `class="freeze"`)
}

// TestMachines checks that the page has the machines of a run, and of several runs each once.
func TestMachines(t *testing.T) {
	a, b := measured("a", 8, 1), measured("b", 8, 2)
	for i, d := range []*report.Document{a, b} {
		d.Host = map[string]any{"os": "linux", "name": "lab", "cores": 8, "memory_modules": []any{map[string]any{"bytes": 1 << 34, "locator": "DIMM_A1", "part_number": "M393"}}}
		d.Hosts = []any{map[string]any{"os": "linux", "name": fmt.Sprintf("kafka-%d", i), "cores": 48, "disks": []any{map[string]any{"name": "sda", "firmware": "EMT02B6Q"}}}}
	}
	const generator, module = "<summary>Machine of the generator</summary>", `<th scope="row">module</th><td>DIMM_A1, 16 GiB, M393</td>`
	for _, tt := range []struct {
		name, want string
		ds         []*report.Document
	}{
		{"one", `<summary>Machine of the system</summary>`, []*report.Document{a}},
		{"several", `<th scope="row">names</th><td>kafka-0, kafka-1 (2 alike)</td>`, []*report.Document{a, b}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := spaced(pageWritten(t, tt.ds...))
			for _, want := range []string{generator, module, `<th scope="row">disk sda</th><td>firmware EMT02B6Q</td>`, tt.want} {
				assert.Equal(t, strings.Count(got, want), 1, "times in the page: %s", want)
			}
		})
	}
}

// TestPageParts checks that the parts of a run are on its page, also if nothing was sent.
func TestPageParts(t *testing.T) {
	for _, sent := range []uint64{0, 1000} {
		d := &report.Document{Schema: report.Schema, ID: "a", Op: "produce", Mode: load.OpenLoop, Totals: report.Totals{Counts: measure.Counts{Sent: sent}}}
		for _, name := range []string{"orders", "payments"} {
			d.Parts = append(d.Parts, report.Part{Name: name, Totals: report.Totals{Counts: measure.Counts{Sent: sent / 2}}})
		}
		got := strings.Split(pageWritten(t, d), `<script type="application/json"`)[0]
		assert.Has(t, got, `<th scope="row">orders</th>`, `<th scope="row">payments</th>`)
	}
}

// fullReport is a report that has every kind of verdict.
func fullReport(t *testing.T, level measure.Level) *report.Document {
	d := document(t, func(in *report.Input) {
		in.Trust = measure.Trust{OK: level != measure.NotTrusted, Level: level, Notes: []string{"a note"}}
		switch level {
		case measure.NotTrusted:
			in.Trust.Reasons = []string{"the first reason", "the second reason"}
		case measure.Noisy:
			in.Trust.Doubts = []string{"a doubt"}
		}
		in.Problems, in.Warnings = []string{"a full disk"}, []string{"a strange topic"}
		in.Checks = append(in.Checks, report.Check{Name: "steady", CannotTell: true, Text: "too short to tell"})
		in.Result.Stopped = load.Interrupted
		in.Result.Steady = measure.Steady{Known: true, Text: "it climbed"}
		in.Result.Stall.Add(4e9, 5e9)
		in.Result.Stall.Share = 0.25
		in.Result.Freezes = measure.Freezes{Count: 1, Total: 2e7}
		in.Encoding = &measure.Encoding{Events: measure.Pooled, Distinct: 7000}
		in.Encoding.Compressed("zstd", 0)
	})
	d.Generates = &report.Generates{EventsPerS: 5000}
	return d
}

// plainText is a report in a format as a reader sees it: without markup, in one line.
func plainText(t *testing.T, format string, d *report.Document) string {
	t.Helper()
	var text string
	if format == "brief" {
		var b bytes.Buffer
		assert.OK(t, d.Brief(&b, layout.Style{}))
		text = b.String()
	} else {
		text = written(t, format, Options{}, d)
	}
	switch format {
	case "html", "junit":
		text = html.UnescapeString(text)
	case "markdown":
		text = html.UnescapeString(strings.ReplaceAll(text, "\\", ""))
	}
	return strings.Join(strings.Fields(text), " ")
}

// TestOneView: every format says everything about a run, in the same words; the first page is a selection.
func TestOneView(t *testing.T) {
	for _, level := range []measure.Level{measure.Trusted, measure.Noisy, measure.NotTrusted} {
		t.Run(string(level), func(t *testing.T) {
			d := fullReport(t, level)
			all := d.Verdicts()
			for _, s := range []report.Subject{report.OnSystem, report.OnEnd, report.OnOutput, report.OnTrust, report.OnGenerator, report.OnLimit, report.OnWarning} {
				assert.True(t, slices.ContainsFunc(all, func(v report.Verdict) bool { return v.On == s }), "no verdict on subject %d", s)
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, v := range all {
					for _, s := range v.Sentences() {
						assert.True(t, strings.Contains(text, s), "%s does not say %q", format, s)
					}
				}
				assert.True(t, strings.Contains(text, d.Headline()), "%s does not say %q", format, d.Headline())
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, r := range slices.Concat(d.Counts(), d.Figures()) {
					assert.True(t, !r.Always || strings.Contains(text, r.Label) || r.Name == "throughput" || r.Name == "bytes_per_s",
						"%s has no %q", format, r.Label)
				}
			}
			for _, format := range []string{"text", "markdown", "html"} {
				text := plainText(t, format, d)
				for _, s := range []string{"pooled: 7,000 different ones", "0% of the work of zstd"} {
					assert.True(t, strings.Contains(text, s), "%s does not say %q", format, s)
				}
			}
			// A limit that is not decided has one word everywhere.
			for format, want := range map[string]string{
				"brief": "cannot tell steady: too short to tell", "text": "cannot tell steady: too short to tell", "html": "cannot tell steady: too short to tell",
				"markdown": "cannot tell: steady: too short to tell", "junit": "cannot tell: too short to tell",
			} {
				assert.True(t, strings.Contains(plainText(t, format, d), want), "%s does not say %q", format, want)
			}
			assert.True(t, slices.Contains(d.Against(), "cannot tell: steady: too short to tell"), "against it is only %q", d.Against())
			var suites xmlSuites
			assert.OK(t, xml.Unmarshal([]byte(written(t, "junit", Options{}, d)), &suites))
			failed, errs := 1, 1 // the limit, and the disk with the interruption
			if level == measure.NotTrusted {
				errs++
			}
			assert.True(t, suites.Failures == failed && suites.Errors == errs && suites.Skipped == 1,
				"%d failures, %d errors, %d skipped; want %d, %d, 1", suites.Failures, suites.Errors, suites.Skipped, failed, errs)
		})
	}
}

// pageSearched is the report of a search with a text that must be escaped.
func pageSearched() *report.Document {
	trial := func(rate float64, result find.Result, p99 time.Duration) find.Tried {
		return find.Tried{
			Trial: find.Trial{Role: find.Search, Rate: rate, Measure: time.Minute}, Report: "abcd2345", Achieved: rate,
			Verdict: &find.Verdict{Result: result, Why: "<script>late</script>"},
			Times:   []find.Quantile{{Of: "response", P: 50, At: p99 / 9, Least: p99 / 10, Most: p99 / 8}, {Of: "response", P: 99, At: p99, Least: p99 / 2, Most: 2 * p99}},
		}
	}
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Target: "kafka://127.0.0.1:9092/orders", Op: "produce", Mode: report.Searching,
		Labels: map[string]string{"find": "f1234567"}, Trust: measure.Trust{OK: true, Level: measure.Trusted},
		Search: &report.Search{
			Limits: []string{"p99 < 50 ms"}, Within: []report.SearchLimit{{Name: "p99 < 50 ms", Of: "response", P: 99, Within: 50 * time.Millisecond}},
			Answer: &find.Answer{
				Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true, Why: "the backlog grows",
				Trials: []find.Tried{trial(500, find.Pass, 5*time.Millisecond), trial(948, find.Pass, 20*time.Millisecond), trial(997, find.Fail, 200*time.Millisecond), trial(1100, find.Undecided, 300*time.Millisecond)},
			},
		},
	}
}

// The page of a search has the answer, the curve and the trials, and no numbers of a run.
func TestSearch(t *testing.T) {
	got := pageWritten(t, pageSearched())
	assert.Has(t, got, "Ceiling of kafka://127.0.0.1:9092/orders", "ceiling 948 to 997/s", "f-load-latency-response", "label.find=f1234567", "&lt;script&gt;late", ">p99 &lt; 50 ms<")
	for _, not := range []string{"Numbers of the measurement", "<script>late"} {
		assert.True(t, !strings.Contains(got, not), "it has %s", not)
	}
	both := pageWritten(t, pageSearched(), measured("b", 8, 1))
	assert.Has(t, both, "Numbers of the measurement", "Trials of f1234567", "f-throughput")
}

// searched is the report of a search.
func searched() *report.Document {
	return &report.Document{
		Schema: report.SearchSchema, ID: "f1234567", Target: "null://", Op: "produce", Mode: report.Searching, Trust: measure.Trust{OK: true, Level: measure.Trusted},
		Search: &report.Search{Limits: []string{"p99 < 50 ms"}, AtLeast: 900, Answer: &find.Answer{
			Ending: find.Found, Holds: 948, HoldsConfirmed: true, Fails: 997, FailsConfirmed: true,
			Trials: []find.Tried{
				{Trial: find.Trial{Role: find.Probe, Concurrency: 8, Measure: 5 * time.Second}, Achieved: 900, Report: "abcd2345"},
				{
					Trial: find.Trial{Role: find.Confirm, Rate: 948, Settle: time.Second, Measure: time.Minute}, Achieved: 947, Report: "abcd2346",
					Verdict: &find.Verdict{Result: find.Pass, Why: "0.3 % | late", Share: 0.003, Least: 0.002, Most: 0.005},
					Times:   []find.Quantile{{Of: "response", P: 50, At: time.Millisecond}, {Of: "response", P: 99, At: 30 * time.Millisecond, Least: 20 * time.Millisecond, Most: 40 * time.Millisecond}},
				},
			},
		}},
	}
}

// CSV has a row for each trial and percentile, all of the same length.
func TestSearchCSV(t *testing.T) {
	rows := assert.Value(csv.NewReader(strings.NewReader(written(t, "csv", Options{}, searched(), searched()))).ReadAll())(t)
	assert.Must(t, len(rows) == 1+2*3, "%d rows", len(rows))
	assert.Equal(t, strings.Join(rows[3], ","),
		"f1234567,2,confirm,948,0,1,60,947,abcd2346,holds,0.3 % | late,0.003,0.002,0.005,response,99,30000,20000,40000")
	var missing *MissingError
	run := document(t, nil)
	for _, ds := range [][]*report.Document{{searched(), run}, {run, searched()}} {
		err := Write(&strings.Builder{}, "csv", Of(ds...), Options{})
		assert.True(t, errors.As(err, &missing), "a search next to a run: %v", err)
	}
}

func TestSearchMarkdown(t *testing.T) {
	got := written(t, "markdown", Options{}, searched())
	assert.Has(t, got, "## Ceiling of null://", "**ceiling 948 to 997/s", "### Trials", `0.3 % \| late`)
	assert.True(t, !strings.Contains(got, "### Events"), "it has counts:\n%s", got)
}

func TestSearchJUnit(t *testing.T) {
	got := written(t, "junit", Options{}, searched())
	assert.Has(t, got, `tests="2" failures="0" errors="0"`, `testcase name="at-least"`, `name="answer" value="ceiling 948 to 997/s`)
	assert.True(t, !strings.Contains(got, "throughput"), "it has a throughput:\n%s", got)
	broken := searched()
	broken.Search.AtLeast = 960
	got = written(t, "junit", Options{}, broken)
	assert.True(t, strings.Contains(got, `failures="1"`), "got\n%s", got)
}
