package heyapm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// A heyTrial is the result of a command line.
type heyTrial struct {
	dropintest.Result
	flags   []map[string]string // for each workload, the flags that gave its settings
	secrets []string            // the values of references during the run
}

// heyAnswered is the report of 1,000 requests of twelve events in ten seconds, of which 900 were accepted and 100 refused; 3 more
// were not answered. 90 of the accepting answers and ten of the others came after the end of sending.
func heyAnswered() *report.Document {
	d := &report.Document{
		Stopped: load.ByTime, Trust: measure.Trust{OK: true},
		Totals: report.Totals{
			Counts: measure.Counts{
				Offered: 12_060, Sent: 12_036, Dropped: 24, Acked: 10_800, Failed: 1200, Unknown: 36, Batches: 1003, Answered: 1000,
				Bytes: 38_000_000, AckedBytes: 34_200_000,
			},
			Statuses: measure.Statuses{{Code: 202, Batches: 900, Events: 10_800}, {Code: 503, Batches: 100, Events: 1200}},
			ElapsedS: 10, EventsPerS: 810 * 12 / 10, BytesPerS: 810 * 38_000 / 10, AnswersPerS: 900 / 10,
		},
		Failures: []measure.Failure{
			{Class: "throttled", Text: "503 Service Unavailable: queue is full", Events: 1200, Batches: 100},
			{Class: "refused", Text: "read tcp 127.0.0.1:1->127.0.0.1:2: read: connection reset by peer", Events: 12, Batches: 1},
			{Class: "refused", Text: "read tcp 127.0.0.1:3->127.0.0.1:2: read: connection reset by peer", Events: 12, Batches: 1},
			{Class: "timeout", Text: "no answer within 3s", Events: 12, Batches: 1},
		},
		Phases: []report.Phase{{Name: "measurement", EndS: 10}, {Name: "drain", StartS: 10, EndS: 10.5}},
		Facts:  map[string]any{"request": map[string]any{"kinds": map[string]any{"transaction": 2.0, "span": 10.0}}},
	}
	d.Service = &measure.Summary{Count: 1000, Mean: 9_500}
	return d
}

func runHeyTool(t *testing.T, strict bool, args ...string) (got heyTrial) {
	t.Helper()
	return runHeyToolWith(t, heyAnswered, strict, args...)
}

func runHeyToolWith(t *testing.T, reportOf func() *report.Document, strict bool, args ...string) (got heyTrial) {
	t.Helper()
	got.Result = dropintest.Run(t.Context(), t, &Tool, dropin.Program{Args: args, Strict: strict}, func(d *workload.Document, o dropin.Observer) (*report.Document, error) {
		flags := map[string]string{}
		for _, entry := range d.Entries {
			flags[entry.Name] = entry.Where
			for _, v := range entry.Values {
				if _, name, ok := strings.Cut(v, "env:"); ok && name != "ES" && name != "TOKEN" {
					got.secrets = append(got.secrets, os.Getenv(name))
				}
				if v == "apm+http://unreachable:1" {
					return nil, errors.New("connection refused")
				}
			}
		}
		got.flags = append(got.flags, flags)
		r := reportOf()
		if o.Kept != nil {
			o.Kept(dropin.Kept{ID: "abcd1234", Place: cmp.Or(dropintest.SettingsOf(d)["store"], "/home/a/reports.db")})
		}
		return r, nil
	})
	return got
}

// The grammar of 2018: a table for each target.
const heyTableForm = `https?://\S+ \d+\n(?:  \[\d{3}\]\t\d+ responses \(\d+\.\d\d%\) ?\n)*  total\t\d+ responses \(\d+\.\d\d rps\)\n` +
	`(?:\n  \d+ errors:\n(?:  \[\d+\]\t\S.*\n)+)?`

var (
	heyTablesForm = regexp.MustCompile(`\A` + heyTableForm + `(?:\n` + heyTableForm + `)*\z`)
	heyLogForm    = regexp.MustCompile(`\A(?:\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \w+\.go:\d+: \[(?:info|error|debug)\] .+\n|warning: .+\n)*\z`)
	// The shell's test. The parts about the server's process and the index are optional.
	heyTestedForm = regexp.MustCompile(`\A(?:started new work, payload size is [\d.]+(?:[kMGTPE]b| b)\.\.\.\n)?on branch \S+ , cmd = \[.+\]\n\n` +
		`pushed [\d.]+(?:[kMGTPE]b| b) / sec , accepted [\d.]+(?:[kMGTPE]b| b) / sec\n` + heyTableForm + `\n` +
		`(?:\d+ docs indexed \(\d+\.\d\d / sec\)  \(\d+\.\d\d% of expected\)\n)?\d+\.\d\d ms / request\n` +
		`(?:[\d.]+[kMGTPE]b \(max RSS\)\n\d+\.\d{3} memory efficiency \(.+\)\n)?(?:saving report\nreport indexed in elasticsearch\n|saving report\nreport \S+ saved in \S+\n)\z`)
	// The result of 2023: a name, dots up to the thirtieth column, a value.
	heyResultForm = regexp.MustCompile(`\A(?: {0,3}(?:- )?[a-z][a-z %]* \.+ (?:\d+(?:\.\d\d)?|\[.*\])\n)+\n\z`)
)

// heySample is from hey-apm's description of 2018.
const heySample = `on branch trace-apm-server , cmd = [30s 1 2 3 4]

pushed 1.6Mb / sec , accepted 1.6Mb / sec
http://0.0.0.0:8200/v1/transactions 0
  [202]	6477 responses (100.00%)
  total	6477 responses (215.90 rps)

15385 docs indexed (512.83 / sec)  (79.18% of expected)
4.63 ms / request
157.7Mb (max RSS)
0.596 memory efficiency (accepted data volume per minute / memory used)
saving report
report indexed in elasticsearch
`

func TestHeyLegacy(t *testing.T) {
	got := runHeyTool(t, false, "-base-url", "http://h:1/")
	assert.True(t, heyTablesForm.MatchString(got.Out), "stdout has the wrong form:\n%s", got.Out)
	assert.True(t, heyLogForm.MatchString(got.Errs), "stderr has the wrong form:\n%s", got.Errs)
	want := "http://h:1/v1/errors 1\n  [202]\t900 responses (90.00%) \n  [503]\t100 responses (10.00%) \n  total\t1000 responses (90.00 rps)\n" +
		"\n  3 errors:\n  [2]\tread: connection reset by peer\n  [1]\tno answer within 3s\n\nhttp://h:1/v1/transactions 2\n"
	assert.True(t, strings.Contains(got.Out, want), "no\n%s\nin\n%s", want, got.Out)
	n := len(got.Workloads)
	assert.True(t, n == 3 && got.Code == 1 && got.Err == nil, "%d workloads, exit %d, %v", n, got.Code, got.Err)
	assert.Has(t, got.Errs,
		"[info] starting worker for http://h:1/v1/transactions\n", "healthcheck gets no requests", "[info] no more time left to make requests\n",
		"[info] stopped cleanly after time expired\n",
	)
}

func TestHeyAgents(t *testing.T) {
	got := runHeyTool(t, false, "-apm-url", "http://h:1", "-sx", "5", "-sm", "5")
	assert.True(t, heyResultForm.MatchString(got.Out) && got.Err == nil && got.Code == 1,
		"exit %d, %v, stdout of the wrong form:\n%s", got.Code, got.Err, got.Out)
	want := `transactions sent ............ 2006
transactions dropped ......... 4
 - success % ................. 99.80
spans sent ................... 10030
spans dropped ................ 20
 - success % ................. 99.80
spans sent per transaction ... 5.00
errors sent .................. 12036
errors dropped ............... 24
 - success % ................. 99.80
total events sent ............ 24072
 - per second ................ 2292.57
 - success % ................. 99.80
 - accepted .................. 21600
   - per second .............. 2057.14
total requests ............... 2006
failed ....................... 6
server errors ................ [503 Service Unavailable: queue is full]

`
	assert.Equal(t, got.Out, want, "output")
	r := heyResult{strict: true}
	r.add(&heyStream{name: "transactions"}, heyAnswered())
	r.add(&heyStream{name: "errors"}, heyAnswered())
	assert.Equal(t, r.generated(), uint64(24072+2*24+4), "events generated with --strict")
}

// Every flag has an effect, causes a warning or is refused.
func TestHeyCases(t *testing.T) {
	dropintest.RunCases(t, "heyapm", "", func(t *testing.T, c *dropintest.Case) dropintest.Result {
		got := runHeyTool(t, c.Strict, c.Args...)
		assert.True(t, !strings.Contains(fmt.Sprint(got.Errs, got.Out, got.Err, got.Workloads), "hunter2"), "the secret is printed")
		for _, text := range got.secrets {
			assert.True(t, text == "hunter2secret" || text == "Bearer hunter2secret", "a reference means %q", text)
		}
		assert.Equal(t, os.Getenv("CARRONADE_AS_HEY_APM_1"), "", "the secret in the environment after the run")
		return got.Result
	})
	tries := map[string]bool{"bench": true, "describe": true, "dump": true} // tested elsewhere
	for _, c := range dropintest.Cases(t, "heyapm") {
		for _, a := range c.Args {
			name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
			tries[name] = tries[name] || strings.HasPrefix(a, "-") && !strings.HasPrefix(c.Name, "refused: ")
		}
	}
	var o heyOptions
	fs := o.flagSet("hey-apm")
	o.systemFlags(fs)
	fs.VisitAll(func(f *flag.Flag) {
		if strings.HasPrefix(f.Name, systemPrefix) {
			return // carronade's
		}
		assert.True(t, tries[f.Name] || f.Name == "server", "-%s is not tested", f.Name) // TestServe
		assert.True(t, f.Name == "run" || heyFlags2018[f.Name] != heyFlags2023[f.Name],
			"-%s belongs to both generations or to none", f.Name)
	})
}

// -describe and -dump show the payloads of a run.
func TestHeyPayloads(t *testing.T) {
	t.Chdir(t.TempDir())
	got := runHeyTool(t, false, "-describe", "-base-url", "http://h:1/")
	form := regexp.MustCompile(`\A(?:(?:POST|GET) \S+ - \d+ \(\d+ gz\) bytes(?: - \d+ transactions with spans of length: (?:\d+ )+)?\n)+\z`)
	assert.True(t, form.MatchString(got.Out) && len(got.Workloads) == 0 && got.Code == 0,
		"exit %d, stdout of the wrong form:\n%s", got.Code, got.Out)
	got = runHeyTool(t, false, "-dump", "-profile", "tiny")
	assert.Must(t, got.Code == 0 && got.Err == nil && len(got.Workloads) == 0, "exit %d, %v", got.Code, got.Err)
	data := assert.Value(os.ReadFile("tiny.yml"))(t)
	dumped := regexp.MustCompile(`\Aloadbeat:\n  targets:\n(?:    - concurrent: \d+\n      qps: \d+\.\d{5}\n      method: (?:POST|GET)\n      url: \S+\n` +
		`(?:      headers:\n        - Content-Type:application/json\n      body: >\n        \{.*\}\n)?\n)+\z`)
	assert.True(t, dumped.Match(data), "tiny.yml has another form:\n%.2000s", data)
	got = runHeyTool(t, false, "-dump", "-profile", "rum")
	assert.Must(t, got.Code == 0 && got.Err == nil, "exit %d, %v", got.Code, got.Err)
	data = assert.Value(os.ReadFile("rum.yml"))(t)
	wantLines := regexp.MustCompile(`(?:        - Content-Type:application/x-ndjson\n      body: \|\n(?:        \{.*\}\n)+\n.*\n.*\n.*\n.*\n.*\n){2}`)
	assert.True(t, wantLines.Match(append(data, "\n\n\n"...)), "rum.yml has another form:\n%.2000s", data)
	for _, tt := range []struct {
		name       string
		part, want int
	}{
		{"5mb", 0, 5e6},
		{"10mb", 0, 10e6},
		{"130kb", 0, 130e3},
		{"910kb", 0, 910e3},
		{"1mb", 0, 1e6},
		{"heavy", 0, 13e3},
		{"heavy", 1, 5e3},
		{"heavy", 2, 160e3},
		{"tiny", 2, 1800},
	} {
		w := heyWork{heyPart: heyProfiles[tt.name][tt.part]}
		plain, gzipped, _, err := w.body()
		assert.OK(t, err)
		if n := len(plain); n < tt.want*9/10 || n > tt.want*12/10 || gzipped >= n {
			t.Errorf("part %d of %s has bodies of %d bytes, %d compressed, want %d", tt.part, tt.name, n, gzipped, tt.want)
		}
	}
}

// TestHeyServe: -server is the server of sessions of the shell.
func TestHeyServe(t *testing.T) {
	served := 0
	p := dropin.Program{Args: []string{"-server"}, Serve: func(context.Context) error { served++; return nil }}
	got := dropintest.Run(t.Context(), t, &Tool, p, func(*workload.Document, dropin.Observer) (*report.Document, error) {
		t.Error("a run")
		return nil, errors.New("a run")
	})
	assert.True(t, served == 1 && got.Code == 0, "served %d times, exit code %d", served, got.Code)
}

func TestHeyDumpBody(t *testing.T) {
	file := filepath.Join(t.TempDir(), "body.json")
	got := runHeyTool(t, false, "dump", file, "1", "2", "3")
	assert.Must(t, got.Code == 0 && got.Err == nil && strings.HasSuffix(got.Out, "kb written to disk\n") && len(got.Workloads) <= 0, "dump: %+v", got)
	data := assert.Value(os.ReadFile(file))(t)
	var body struct {
		Transactions []struct {
			Spans []struct {
				Stacktrace []any `json:"stacktrace"`
			} `json:"spans"`
		} `json:"transactions"`
	}
	if err := json.Unmarshal(data, &body); err != nil || len(body.Transactions) != 1 || len(body.Transactions[0].Spans) != 2 || len(body.Transactions[0].Spans[0].Stacktrace) != 3 {
		t.Errorf("body %+v: %v", body, err)
	}
	for _, args := range [][]string{{file, "1", "2"}, {file, "1", "2", "x"}, {file, "-1", "2", "3"}, {filepath.Join(file, "x"), "1", "2", "3"}} {
		got := runHeyTool(t, false, append([]string{"dump"}, args...)...)
		assert.True(t, got.Code == 1 && got.Err != nil, "dump %v: %+v", args, got)
	}
}

// Indices are deleted only after --yes, and only those of an APM Server.
func TestHeyReset(t *testing.T) {
	deleted := ""
	s := testkit.HTTP(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodDelete:
			deleted += r.URL.Path
			fmt.Fprint(w, `{}`)
		case r.URL.Path == "/_cluster/health":
			fmt.Fprint(w, `{"status":"green"}`)
		case strings.HasSuffix(r.URL.Path, "/_count"):
			fmt.Fprint(w, `{"count":12}`)
		default:
			fmt.Fprint(w, `[{"index":"apm-1"},{"index":"mine"}]`)
		}
	})
	for _, c := range []struct {
		args []string
		err  string
	}{
		{[]string{"elasticsearch", "reset", "--yes"}, "give -apm-es-url URL elasticsearch reset --yes"},
		{[]string{"-apm-es-url", s.URL, "elasticsearch", "use", "local"}, "the only command for elasticsearch here is"},
		{[]string{"-apm-es-url", s.URL, "elasticsearch", "reset"}, "would delete 1 indices apm-* with 12 docs of " + s.URL + ": add --yes"},
		{[]string{"-apm-es-url", "http://ann:pw@127.0.0.1:1", "elasticsearch", "reset", "--yes"}, "must not contain a login"},
		{[]string{"-apm-es-url", "http://127.0.0.1:1", "elasticsearch", "reset", "--yes"}, "connection refused"},
	} {
		got := runHeyTool(t, false, c.args...)
		assert.True(t, got.Code == 1 && got.Err != nil && strings.Contains(got.Err.Error(), c.err) && !strings.Contains(got.Err.Error(), "ann:pw") && deleted == "",
			"%v: %+v, deleted %q", c.args, got, deleted)
	}
	got := runHeyTool(t, false, "-apm-es-url", s.URL, "elasticsearch", "reset", "--yes")
	assert.True(t, got.Code == 0 && got.Out == "deleted 1 indices with 12 docs\n" && deleted == "/apm-1", "reset: %+v, deleted %q", got, deleted)
}
