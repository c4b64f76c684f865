package heyapm

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/internal/dropin/dropintest"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// A heyTrial is the result of a command line.
type heyTrial struct {
	dropintest.Result
	flags   []map[string]string // for each workload, the flags that gave its settings
	secrets []string            // the values of references during the run
}

// heyAnswered is the report of 1,000 requests of twelve events in ten seconds, of
// which 900 were accepted and 100 refused; 3 more were not answered. 90 of the
// accepting answers and ten of the others came after the end of sending.
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

// runHeyToolWith runs the tool with reports from reportOf.
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
	// The shell's test. The parts about the server's process and the index are
	// optional.
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
func TestHeyFlags(t *testing.T) {
	tests := []struct {
		name    string
		strict  bool
		args    []string
		want    map[string]string // of the last workload; "" is absent
		warning string
	}{
		{"nothing", false, nil, map[string]string{
			"target": "apm+http://localhost:8200", "for": "10s", "intake": "v1", "events": "10", "spans": "1", "clients": "50",
			"rate": "10000/s", "overload": "drop", "concurrency": "", "gzip": "6", "request-timeout": "3s", "count": "", "repeat-body": "", "keep-alive": "",
		}, ""},
		{"one body", true, nil, map[string]string{"repeat-body": "true"}, ""},
		{"servers", false, []string{"-base-url", "http://a:1/", "-base-url", "https://b/apm/"}, map[string]string{"target": "apm+https://b:443/apm"}, "http://a:1/v1/errors"},
		{"a header", false, []string{"-header", "X-A: b: c"}, map[string]string{"header": "X-A: b: c"}, ""},
		{"a profile without a bound", false, []string{"-profile", "5mb"}, map[string]string{"rate": "", "concurrency": "100", "clients": "100", "events": "1", "spans": "286"}, ""},
		{"browsers", false, []string{"-profile", "rum"}, map[string]string{"intake": "rum-v2", "concurrency": "2"}, "go to /intake/v2/rum/events"},
		{"a number of requests", false, []string{"-requests", "20", "-profile=1mb"}, map[string]string{"count": "1680", "count-at-most": "true", "overload": ""}, ""},
		{"times", false, []string{"-run", "3s", "-timeout", "7"}, map[string]string{"for": "3s", "request-timeout": "7s"}, ""},
		{"no timeout", false, []string{"-timeout", "0"}, map[string]string{"request-timeout": "1h0m0s"}, ""},
		{"features disabled", false, []string{"-disable-compression", "-disable-keepalive", "-disable-redirects"}, map[string]string{"gzip": "", "keep-alive": "false"}, ""},
		{"a test of a number", false, []string{"-requests", "20", "-timeout", "7", "-header", "X: y", "-disable-compression", "test", "1s", "1", "2", "3", "4"}, map[string]string{
			"for": "1s", "count": "60", "request-timeout": "7s", "header": "X: y", "gzip": "",
		}, ""},
		{"a test of a profile", false, []string{"-profile", "tiny", "test", "1s", "1", "2", "3", "4"}, map[string]string{"events": "1", "frames": "3"}, "warning: -profile has no effect with test"},
		{"a test for a time", false, []string{"-run", "3s", "test", "1s", "1", "2", "3", "4"}, map[string]string{"for": "1s"}, "warning: -run has no effect with test"},

		{"agents", false, []string{"-apm-url", "http://h:1"}, map[string]string{
			"target": "apm+http://h:1", "for": "30s", "mix": "error=1", "frames": "0-10", "concurrency": "1", "clients": "1", "rate": "", "gzip": "1", "verbose": "true", "events": "100",
		}, ""},
		{"only transactions", false, []string{"-e", "0", "-sx", "4", "-sm", "4", "-t", "1000", "-tf", "1ms"}, map[string]string{
			"mix": "transaction=1", "spans": "4", "count": "5000", "count-at-most": "true", "rate": "5000/s", "events": "100", "concurrency": "",
		}, ""},
		{"an approximate number", false, []string{"-e", "0", "-sx", "9", "-t", "10"}, map[string]string{"spans": "1-9", "count": "60", "events": "10"}, "the number of transactions is approximate"},
		{"only errors", false, []string{"-t", "0", "-e", "30", "-ef", "100ms", "-ex", "3", "-em", "5"}, map[string]string{
			"mix": "error=1", "frames": "5", "count": "30", "rate": "10/s", "events": "1", "spans": "0",
		}, ""},
		{"several agents", false, []string{"-instances", "3", "-t", "0", "-ef", "1ms", "-run", "1m"}, map[string]string{"clients": "3", "rate": "3000/s", "for": "1m0s"}, ""},
		{"a seed and a flush time", false, []string{"-seed", "7", "-flush", "3s"}, map[string]string{"seed": "7", "drain": "3s"}, ""},
		{"no flush time", false, []string{"-flush", "0"}, map[string]string{"drain": "1h0m0s"}, ""},
		{"a delay between agents", false, []string{"-delay", "5"}, nil, "warning: -delay has no effect here"},
		{"a name", false, []string{"-service-name", "x"}, nil, "warning: -service-name has no effect here"},
		{"where reports go", false, []string{"-es-url", "http://es:9200"}, map[string]string{"store": "elasticsearch://es:9200"}, ""},
		{"the reports' login", false, []string{"-es-url", "https://es/p", "-es-auth", "u&v:hunter2secret"}, map[string]string{
			"store": "elasticsearch+https://es/p?user=u%26v&password=env:CARRONADE_AS_HEY_APM_1",
		}, "warning: the secret of -es-auth is visible"},
		{"a login without a URL", false, []string{"-es-auth", "u:hunter2secret", "-apm-es-auth", "u:hunter2secret"}, map[string]string{"store": "", "index-user": ""}, "warning: -apm-es-auth has no effect here without -apm-es-url"},
		{"a login in a file", false, []string{"-es-url", "http://es:9200", "-es-auth", "u:file:/a&b/c"}, map[string]string{"store": "elasticsearch://es:9200?user=u&password=file:/a%26b/c"}, ""},
		{"a login by reference", false, []string{"-es-url", "http://es:9200", "-es-auth", "u:env:ES"}, map[string]string{"store": "elasticsearch://es:9200?user=u&password=env:ES"}, ""},
		{"indexed documents", false, []string{"-apm-es-url", "http://es:9200", "-apm-es-auth", "u:hunter2secret"}, map[string]string{
			"index": "http://es:9200", "index-pattern": "logs-apm*", "index-user": "u", "index-password": "env:CARRONADE_AS_HEY_APM_1",
		}, "warning: the secret of -apm-es-auth is visible"},
		{"a token", false, []string{"-apm-secret", "hunter2secret"}, map[string]string{"secret-token": "env:CARRONADE_AS_HEY_APM_1"}, "warning: the secret of -apm-secret is visible"},
		{"a token by reference", false, []string{"-apm-secret", "env:TOKEN"}, map[string]string{"secret-token": "env:TOKEN"}, ""},
		{"a key", false, []string{"-api-key", "hunter2secret"}, map[string]string{"api-key": "env:CARRONADE_AS_HEY_APM_1"}, "warning: the secret of -api-key is visible"},
		{"a login in a header", false, []string{"-header", "Authorization: Bearer hunter2secret"}, map[string]string{"header": "Authorization: env:CARRONADE_AS_HEY_APM_1"}, "warning: the secret of -header"},
		{"without an end", false, []string{"-apm-url", "http://h:1", "-run", "0"}, map[string]string{"for": ""}, ""},
		{"a test with indexed documents", false, []string{"-apm-es-url", "http://es:9200", "-apm-es-auth", "u:hunter2secret", "test", "1s", "1", "2", "3", "4"}, map[string]string{
			"target": "apm+http://localhost:8200", "intake": "auto", "concurrency": "4", "for": "1s", "rate": "",
			"index": "http://es:9200", "index-pattern": "apm-*,traces-apm*,logs-apm*", "index-user": "u", "index-password": "env:CARRONADE_AS_HEY_APM_1",
		}, "warning: the secret of -apm-es-auth is visible"},
		{"a test with a login without a URL", false, []string{"-apm-es-auth", "u:hunter2secret", "test", "1s", "1", "2", "3", "4"}, map[string]string{"index": "", "index-user": ""}, "warning: -apm-es-auth has no effect here without -apm-es-url"},
		{"a test of a process", false, []string{"-system-pid", "4711", "--system-gc-log=gc%p.log", "test", "1s", "1", "2", "3", "4"}, map[string]string{
			"system-pid": "4711", "system-gc-log": "gc%p.log", "index": "",
		}, ""},
		{"a test of a server to start", false, []string{"-system-cmd", "./apm-server -e", "-system-git", ".", "-system-jvm-gc", "test", "30s", "1", "2", "3", "4", "-E", "apm-server.tracing.enabled=true", "--mem", "4g", "-E", "a=b"}, map[string]string{
			"system-cmd": "./apm-server -e", "system-git": ".", "system-jvm-gc": "true", "system-flag": "apm-server.tracing.enabled=true a=b", "system-mem": "4000000000", "for": "30s",
		}, ""},
		{"regressions", false, []string{"-rm", "1.2", "-rd", "3"}, nil, "warning: -rd has no effect here"},
	}
	tries := map[string]bool{"bench": true, "describe": true, "dump": true} // tested elsewhere
	for _, tt := range tests {
		for _, a := range tt.args {
			name, _, _ := strings.Cut(strings.TrimPrefix(a, "-"), "=")
			tries[name] = tries[name] || strings.HasPrefix(a, "-")
		}
		t.Run(tt.name, func(t *testing.T) {
			got := runHeyTool(t, tt.strict, tt.args...)
			assert.Must(t, tt.want == nil || len(got.Workloads) != 0, "no run: exit %d, %v, %s", got.Code, got.Err, got.Errs)
			for name, want := range tt.want {
				assert.Equal(t, got.Last()[name], want, "%s", name)
			}
			assert.True(t, strings.Contains(got.Errs, tt.warning), "stderr has no %q:\n%s", tt.warning, got.Errs)
			assert.True(t, !strings.Contains(got.Errs+got.Out, "hunter2"), "the secret is printed")
			for _, settings := range got.Workloads {
				for name, v := range settings {
					assert.True(t, !strings.Contains(v, "hunter2"), "the secret is in %s", name)
				}
			}
			for _, text := range got.secrets {
				assert.True(t, text == "hunter2secret" || text == "Bearer hunter2secret", "a reference means %q", text)
			}
			assert.Equal(t, os.Getenv("CARRONADE_AS_HEY_APM_1"), "", "the secret in the environment after the run")
		})
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

func TestHeyUsage(t *testing.T) {
	for _, tt := range []struct {
		name string
		args []string
		errs string // a part of stderr
		err  string // of the error that carronade prints
		code int
	}{
		{"help", []string{"-h"}, "Usage of hey-apm:\n", "", 0},
		{"no such flag", []string{"-foo"}, "flag provided but not defined: -foo\nUsage of hey-apm:\n", "", 2},
		{"no duration", []string{"-run", "soon"}, "invalid value \"soon\" for flag -run: parse error\n", "", 2},
		{"no such profile", []string{"-profile", "light"}, " [error] unknown profile\n", "", 1},
		{"no header", []string{"-header", "x"}, " [error] invalid header \"x\", use \"key: this is the value\"\n", "", 1},
		{"two generations", []string{"-profile", "tiny", "-t", "3"}, "", "-profile belongs to 2018 and -t to 2023", 1},
		{"no URL", []string{"-base-url", "localhost:8200"}, "", "-base-url: ", 1},
		{"a user in a URL", []string{"-apm-url", "http://u:hunter2secret@h:1"}, "", "a URL must not contain a user", 1},
		{"nothing to do", []string{"-t", "0", "-e", "0"}, "", "nothing is left to generate", 1},
		{"no agents", []string{"-instances", "0"}, "", "must be at least 1", 1},
		{"no frequency", []string{"-tf", "0"}, "", "a frequency must be a duration above 0", 1},
		{"unreachable", []string{"-apm-url", "http://unreachable:1"}, "", "connection refused", 2},
		{"unreachable for a profile", []string{"-base-url", "http://unreachable:1"}, "", "connection refused", 2},
		{"unreachable for a test", []string{"-base-url", "http://unreachable:1", "test", "1s", "1", "2", "3", "4"}, "", "connection refused", 2},
		{"unreachable for a benchmark", []string{"-apm-url", "http://unreachable:1", "-bench"}, "", "connection refused", 2},
		{"a test that is described", []string{"-describe", "test", "1s", "1", "2", "3", "4"}, "", "-describe and test: give one of them", 1},
		{"a test that is dumped", []string{"-dump", "test", "1s", "1", "2", "3", "4"}, "", "-dump and test: give one of them", 1},
		{"a test of the shell", []string{"-server", "test", "1s", "1", "2", "3", "4"}, "", "-server and test: give one of them", 1},
		{"no header of a test", []string{"-header", "x", "test", "1s", "1", "2", "3", "4"}, " [error] invalid header \"x\", use \"key: this is the value\"\n", "", 1},
		{"a test of too little", []string{"test", "30s", "1"}, "", "got 2 arguments", 1},
		{"a test of a server to start", []string{"test", "30s", "1", "1", "1", "1", "-E", "a=b"}, "", "need a server that is started here", 1},
		{"a test of a server's own flag", []string{"-system-cmd", "x", "test", "30s", "1", "1", "1", "1", "-d", "*"}, "", "-d is neither -E NAME=VALUE nor --mem SIZE", 1},
		{"a test without a setting", []string{"-system-cmd", "x", "test", "30s", "1", "1", "1", "1", "-E"}, "", "-E has no value", 1},
		{"a test of no memory", []string{"-system-cmd", "x", "test", "30s", "1", "1", "1", "1", "--mem", "much"}, "", "--mem: a size is a number followed by k, m or g", 1},
		{"a test of agents", []string{"-t", "5", "test", "30s", "1", "2", "3", "4"}, "", "test belongs to 2018 and -t to 2023", 1},
		{"a test at another server", []string{"-apm-url", "http://h:1", "-apm-es-url", "http://es:9200", "test", "30s", "1", "2", "3", "4"}, "", "test belongs to 2018 and -apm-url to 2023", 1},
		{"a profile of a process", []string{"-system-pid", "4711"}, "", "-system-pid is for test", 1},
		{"a command of the shell", []string{"collate", "branch"}, "", "collate is a command of the shell, which is not available here: carronade collate", 1},
		{"another command", []string{"elasticsearch", "use", "local"}, "", "-apm-es-url URL", 1},
		{"no time", []string{"-profile", "maxspans", "-run", "0s"}, "", "-run 0s sends nothing: leave it out for 10s", 1},
		{"a negative time", []string{"-run", "-1s"}, "", "-run -1s sends nothing", 1},
		{"a benchmark without an end", []string{"-bench", "-run", "0"}, "", "would never end", 1},
		{"a test of no time", []string{"test", "x", "1", "1", "1", "1"}, "", "is not a duration", 1},
		{"a test without concurrency", []string{"test", "1s", "1", "1", "1", "0"}, "", "concurrency 0 sends nothing", 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := runHeyTool(t, false, tt.args...)
			msg := ""
			if got.Err != nil {
				msg = got.Err.Error()
			}
			if !strings.Contains(got.Errs, tt.errs) || got.Code != tt.code || !strings.Contains(msg, tt.err) || tt.err == "" && msg != "" {
				t.Errorf("exit %d, error %q, stderr %q", got.Code, msg, got.Errs)
			}
			assert.True(t, !strings.Contains(msg+got.Errs+got.Out, "hunter2"), "the secret is printed")
		})
	}
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
	data, err := os.ReadFile("tiny.yml")
	assert.OK(t, err)
	dumped := regexp.MustCompile(`\Aloadbeat:\n  targets:\n(?:    - concurrent: \d+\n      qps: \d+\.\d{5}\n      method: (?:POST|GET)\n      url: \S+\n` +
		`(?:      headers:\n        - Content-Type:application/json\n      body: >\n        \{.*\}\n)?\n)+\z`)
	assert.True(t, dumped.Match(data), "tiny.yml has another form:\n%.2000s", data)
	got = runHeyTool(t, false, "-dump", "-profile", "rum")
	assert.Must(t, got.Code == 0 && got.Err == nil, "exit %d, %v", got.Code, got.Err)
	data, err = os.ReadFile("rum.yml")
	assert.OK(t, err)
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
	p := dropin.Program{Args: []string{"-server"}, Serve: func(context.Context) error {
		served++
		return nil
	}}
	got := dropintest.Run(t.Context(), t, &Tool, p, func(*workload.Document, dropin.Observer) (*report.Document, error) {
		t.Error("a run")
		return nil, errors.New("a run")
	})
	assert.True(t, served == 1 && got.Code == 0, "served %d times, exit code %d", served, got.Code)
}
