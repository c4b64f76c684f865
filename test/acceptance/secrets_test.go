//go:build conformance

package acceptance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// canary begins every secret in these tests: no output may contain it.
const canary = "c4n4ry"

// checkNoSecrets searches for the canary in a run's output and in all files that it
// left: in its home and in the folder of its outputs.
func checkNoSecrets(t *testing.T, s *session, e ended, dir string) {
	t.Helper()
	texts := map[string]string{"stdout": e.stdout, "stderr": e.stderr}
	for _, root := range []string{s.home, dir} {
		assert.OK(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			text, err := os.ReadFile(path)
			texts[path] = string(text)
			return err
		}))
	}
	if _, err := os.Stat(filepath.Join(s.home, "carronade", "reports.db")); err == nil {
		// The store compresses reports: search their exported texts.
		list := runAt(t, s.home, "report", "list").stdout
		for line := range strings.Lines(list) {
			if id, _, _ := strings.Cut(line, " "); id != "id" && id != "" {
				texts["report "+id] = runAt(t, s.home, "report", "export", id, "--as", "json").want(t, 0).stdout
			}
		}
	}
	for where, text := range texts {
		if i := strings.Index(text, canary); i >= 0 {
			t.Errorf("%s has a secret: ...%s...", where, text[max(0, i-200):min(len(text), i+40)])
		}
	}
}

// TestSecrets passes secrets in every possible way and searches all output for them: of runs that succeed, of
// runs with a system that prints its secrets and then dies, and of runs that are refused.
func TestSecrets(t *testing.T) {
	t.Parallel()
	var env []string
	for _, name := range []string{"TOKEN", "KEY", "HEADER", "PASSWORD", "ENV", "FLAG", "SCRAPE"} {
		env = append(env, "CANARY_"+name+"="+canary+"-of-"+strings.ToLower(name))
	}
	begin := func(t *testing.T, args ...string) *session {
		s := prepare(t, args...)
		s.env = env
		s.begin()
		return s
	}
	secrets := t.TempDir()
	file := filepath.Join(secrets, "secret")
	writeFile(t, file, canary+"-of-a-file\n")
	attached := filepath.Join(secrets, "server.yaml")
	writeFile(t, attached, "port: 1\noutput:\n  password: "+canary+"\n  hosts: [\"http://u:"+canary+"@h:9200\"]\ntoken of the run: "+canary+"-of-token\n-----BEGIN PRIVATE KEY-----\n"+canary+"\n-----END PRIVATE KEY-----\n")
	repo := commitRepo(t, "main")
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.True(t, r.URL.Path != "/debug/vars" || r.Header.Get("X-Scrape") == canary+"-of-scrape",
			"the header of --system-header did not arrive")
		fmt.Fprint(w, `{"count":0,"active":3,"status":"green","version":{"number":"8.19.0"}}`)
	}))
	defer outside.Close()
	withPassword := "http://u:" + canary + "@127.0.0.1:1/"
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	to := "apm+http://" + server.addr

	for _, tt := range []struct {
		name string
		code int // -1: 0 or 3
		args []string
	}{
		{"by reference", -1, []string{
			to, "--count", "80", "--secret-token", "env:CANARY_TOKEN", "--header", "X-One: env:CANARY_HEADER", "--header", "X-Two: file:" + file,
			"--index", outside.URL, "--index-user", "me", "--index-password", "file:" + file, "--index-wait", "50ms",
			"--system-vars", outside.URL + "/debug/vars", "--system-header", "X-Scrape=env:CANARY_SCRAPE",
		}},
		{"keys", -1, []string{to, "--count", "80", "--api-key", "env:CANARY_KEY", "--index", outside.URL, "--index-api-key", "env:CANARY_PASSWORD", "--index-wait", "50ms"}},
		{"in the report's own data", -1, []string{
			to, "--count", "80", "--secret-token", "env:CANARY_TOKEN", "--note", "token=" + canary, "--label", "db_password=" + canary, "--attach", attached,
		}},
		{"refused", 2, []string{"apm+http://" + testkit.ClosedPort, "--count", "80", "--secret-token", "env:CANARY_TOKEN"}},
		{"a plain token", 2, []string{to, "--count", "80", "--secret-token", canary}},
		{"a plain key", 2, []string{to, "--count", "80", "--api-key", canary}},
		{"in the target", 2, []string{"apm+http://u:" + canary + "@" + server.addr, "--count", "80"}},
		{"in the target's query", 2, []string{to + "/?secret_token=" + canary, "--count", "80"}},
		{"in the store's address", 2, []string{to, "--count", "80", "--index", withPassword}},
		{"in the proxy's address", 2, []string{to, "--count", "80", "--proxy", withPassword}},
		{"in the address of variables", -1, []string{to, "--count", "80", "--system-vars", withPassword}},
		{"a plain header", 2, []string{to, "--count", "80", "--system-vars", outside.URL, "--system-header", "X=" + canary}},
		{"a login as a header", 2, []string{to, "--count", "80", "--header", "Authorization: Bearer " + canary}},
		{"plain environment", 2, []string{to, "--count", "80", "--system-cmd", "true", "--system-env", "SERVER_PASSWORD=" + canary}},
		{"a plain flag", 2, []string{to, "--count", "80", "--system-cmd", "true", "--system-flag", "output.password=" + canary}},
		{"a system that does not start", 2, []string{
			"apm+http://" + testkit.ClosedPort, "--count", "80", "--system-cmd", "sh -c 'echo password=$S; echo token $0 >&2; exit 4' --password " + canary,
			"--system-env", "S=env:CANARY_ENV", "--system-flag", "secret=env:CANARY_FLAG",
		}},
		{"a build that fails", 2, []string{
			to, "--count", "80", "--system-cmd", "true", "--system-git", repo, "--system-build", "echo --password " + canary + "; exit 1",
		}},
		{"in the readiness address", 2, []string{
			"apm+http://" + testkit.ClosedPort, "--count", "80", "--system-cmd", "sleep 60", "--system-ready", withPassword, "--system-ready-within", "100ms",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			s := begin(t, append([]string{"run", "--json-file", filepath.Join(dir, "report.json"), "--hdr", filepath.Join(dir, "run.hlog")}, tt.args...)...)
			e := s.wait(runTimeout)
			if tt.code < 0 {
				e.wantOneOf(t, 0, 3)
			} else {
				e.want(t, tt.code)
			}
			checkNoSecrets(t, s, e, dir)
		})
	}

	t.Run("a system that dies", func(t *testing.T) {
		dir, addr := t.TempDir(), "127.0.0.1:"+freePort(t)
		enough := filepath.Join(t.TempDir(), "enough")
		script := "echo token $TOKEN; " + program + " standin apm --listen " + addr + " --secret-token env:TOKEN & " +
			"while [ ! -e " + enough + " ]; do sleep 0.1; done; kill $!; echo the password is $TOKEN; echo and $0 $* >&2; exit 7"
		s := begin(t, "run", "apm+http://"+addr, "--rate", "1k/s", "--for", "30s", "--secret-token", "env:CANARY_ENV", "--json", "--json-file", filepath.Join(dir, "report.json"),
			"--system-cmd", "sh -c '"+script+"'", "--system-env", "TOKEN=env:CANARY_ENV", "--system-flag", "output.password=env:CANARY_FLAG", "--system-flag", "queue=100")
		s.awaitStderr(progressText)
		writeFile(t, enough, "")
		e := s.wait(runTimeout).want(t, 3)
		d := e.document(t)
		assert.True(t, d.System.Died && strings.Contains(d.System.Exit, "7") &&
			strings.Contains(strings.Join(d.System.LastLines, "\n"), "the password is"), "system %+v", d.System)
		flags, _ := d.System.Facts["flags"].(map[string]any)
		assert.True(t, flags["output.password"] == "env:CANARY_FLAG" && flags["queue"] == "100", "flags %v", flags)
		checkNoSecrets(t, s, e, dir)
	})
}

// This file runs commands that others published years ago, with only addresses and
// topics changed, and parses the output by the grammar of the published output.

// A printedCommand is a published command.
type printedCommand struct {
	name, line   string
	replacements []string      // old and new, alternating: addresses, topics, and in one of them a count
	interruptAt  string        // the text on stdout at which it is interrupted
	timeout      time.Duration // 0: twice runTimeout
	forms        []form
	want         []string // forms or fields that must occur at least once
	same         map[string]string
	code         int
}

// sangrenelForms are the lines of sangrenel of 2014.
var sangrenelForms = []form{
	many("blank", ``),
	line("title", `::: Sangrenel :::`),
	line("workers", `Starting (?P<n>\d+) workers`),
	line("size", `Message size (?P<bytes>\d+) bytes`),
	many("connected", `client_\d+ connected`),
	many("down", `client_\d+ shutting down`),
	many("producing", `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(Z|[+-]\d\d:\d\d) Producing (?P<output>\d+)(Mb|KB)/sec raw data @ (?P<rate>\d+) messages/sec \| topic: [\w.-]+ \| (?P<ms>\d+\.\d\d)ms avg latency`),
}

const (
	brokers2018 = "172.25.52.170:33092,172.25.52.171:33092,172.25.52.169:33092,172.25.52.168:33092,172.25.52.167:33092"
	brokers2014 = "10.0.1.37:9092,10.0.1.40:9092,10.0.1.62:9092"
)

func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	addr := broker.Bootstrap()
	topic := func() string { return broker.CreateTopic(t, 3, 1) }
	repeat := func(addr string, n int) string { return strings.TrimSuffix(strings.Repeat(addr+",", n), ",") }
	list := func(n int) string { return repeat(addr, n) }
	// With delayed answers, a run lasts longer than a window.
	slow := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "1", "--delay", "15ms").addr
	refuses := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--error", "invalid-record@100%", "--delay", "20ms").addr
	// A broker that keeps nothing accepts the published numbers of records.
	bottomless := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--discard").addr
	for _, p := range []printedCommand{
		{
			name: "sangrenel, to brokers",
			line: "./sangrenel --size=2500 --workers=8 --topic=rep --brokers=" + brokers2014, replacements: []string{brokers2014, list(3), "=rep", "=" + topic()},
			interruptAt: "messages/sec", forms: sangrenelForms, want: []string{"title.", "producing.rate"}, same: map[string]string{"workers.n": "8", "size.bytes": "2500"},
		},
		{
			name: "sangrenel, to a broker that refuses",
			line: "./sangrenel --size=2500 --topic=rep --brokers=" + brokers2014, replacements: []string{brokers2014, refuses},
			interruptAt: "messages/sec", forms: sangrenelForms, same: map[string]string{"producing.rate": "0"}, code: 1,
		},
		{
			name:        "sangrenel, to nowhere",
			line:        "./sangrenel --noop=true",
			interruptAt: "messages/sec", forms: sangrenelForms, want: []string{"producing.rate"}, same: map[string]string{"workers.n": "1", "size.bytes": "300", "producing.ms": "0.00"},
		},
		{name: "sangrenel, help", line: "./sangrenel -h"},
		{
			name:         "ten thousand records",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 10000 --record-size 2000 --throughput 10000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "10000"},
		},
		{
			name:         "a million records",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 1000000 --record-size 100 --throughput 1000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "1000000"},
		},
		{
			name:         "ten thousand records, slowly answered",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 10000 --record-size 2000 --throughput 10000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, repeat(slow, 5)}, forms: producerForms2018, want: []string{"window.rate"}, same: map[string]string{"total.records": "10000"},
		},
		{
			// 200 GB, with only addresses changed, to a broker that keeps nothing.
			name: "a hundred million records", timeout: 15 * time.Minute,
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 100000000 --record-size 2000 --throughput 100000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, repeat(bottomless, 5)}, forms: producerForms2018,
			want: []string{"window.rate"}, same: map[string]string{"total.records": "100000000"},
		},
		{
			name:         "a million of them, to a broker",
			line:         "./kafka-producer-perf-test.sh --topic api-test --num-records 100000000 --record-size 2000 --throughput 100000000 --producer-props bootstrap.servers=" + brokers2018 + " batch.size=8196",
			replacements: []string{brokers2018, list(5), "api-test", topic(), "--num-records 100000000", "--num-records 1000000"}, forms: producerForms2018,
			same: map[string]string{"total.records": "1000000"},
		},
		{
			name:         "records of one byte",
			line:         "./bin/kafka-run-class.sh org.apache.kafka.tools.ProducerPerformance --throughput=-1 --topic=test-one --num-records=2000000 --record-size=1 --producer-props bootstrap.servers=localhost:9092 buffer.memory=33554432 batch.size=200",
			replacements: []string{"localhost:9092", addr, "test-one", topic()}, forms: producerForms2018, same: map[string]string{"total.records": "2000000"},
		},
	} {
		t.Run(strings.ReplaceAll(p.name, " ", "-"), func(t *testing.T) { t.Parallel(); p.check(t) })
	}
}

// check runs the command in a folder where its program is a link to carronade.
func (p *printedCommand) check(t *testing.T) {
	dir := t.TempDir()
	args := strings.Fields(strings.NewReplacer(p.replacements...).Replace(p.line))
	link := filepath.Join(dir, args[0])
	assert.OK(t, os.MkdirAll(filepath.Dir(link), 0o700))
	assert.OK(t, os.Symlink(program, link))
	run := prepare(t, args[1:]...)
	run.cmd.Path, run.cmd.Args[0], run.cmd.Dir, run.home = link, link, dir, dir
	run.begin()
	if p.interruptAt != "" {
		run.awaitStdout(1, p.interruptAt)
		run.signal(syscall.SIGINT)
	}
	e := run.wait(cmp.Or(p.timeout, 2*runTimeout))
	s := side{who: carronadeSide, code: e.code, out: e.stdout, errs: e.stderr}
	// 3: a generator that fell behind on a busy machine
	assert.True(t, s.code == p.code || s.code == 3, "exit %d, want %d", s.code, p.code)
	assert.OK(t, s.parse(p.forms))
	for _, name := range p.want {
		form, field, _ := strings.Cut(name, ".")
		assert.True(t, (field == "" || len(s.fields[name]) != 0) && (field != "" || strings.Contains(strings.Join(s.lines, " "), form)), "no line has %s", name)
	}
	for name, want := range p.same {
		got := s.fields[name]
		assert.True(t, len(got) > 0 && got[0] == want, "%s is %q, want %q", name, got, want)
	}
	if t.Failed() {
		t.Logf("%s\n%s%s", strings.Join(args, " "), s.out, s.errs)
	}
}

func runAt(t testing.TB, home string, args ...string) ended {
	t.Helper()
	s := prepare(t, args...)
	s.home = home
	s.begin()
	return s.wait(runTimeout)
}

// A listed is a report in the output of report list.
type listed struct {
	ID      string         `json:"id"`
	Running bool           `json:"running"`
	Fields  map[string]any `json:"fields"`
}

func list(t testing.TB, home string) []listed {
	t.Helper()
	var l struct {
		Reports []listed `json:"reports"`
	}
	e := runAt(t, home, "report", "list", "--all", "--json", "--columns", "stopped,partial,throughput").want(t, 0)
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &l))
	return l.Reports
}

// A generator that is killed in the middle of a run leaves a partial report of what it had measured, which list
// marks and show prints. No earlier report is lost or changed.
func TestGeneratorKilled(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	runAt(t, home, "run", "null://", "--rate", "1k/s", "--for", "300ms", "--quiet", "--label", "n=first").wantOneOf(t, 0, 3)
	before := list(t, home)
	assert.Must(t, len(before) == 1, "got %d reports of one run", len(before))
	first := runAt(t, home, "report", "export", "last", "--as", "json").want(t, 0).stdout
	for i, args := range [][]string{
		{"run", "null://", "--rate", "10k/s", "--for", "5m", "--interval", "200ms"},
		{"run", "null://", "--concurrency", "2", "--for", "5m", "--interval", "200ms"},
		{"run", "null://", "--rate", "1k/s", "--for", "5m", "--interval", "1h"}, // before its first interval has ended
	} {
		s := prepare(t, args...)
		s.home = home
		s.begin()
		if i == 2 {
			pause(t, time.Second)
			s.signal(syscall.SIGKILL)
			<-s.done
			break
		}
		awaitIntervals(t, home, 3)
		now := list(t, home)
		assert.Must(t, len(now) == i+2 && now[0].Running && !now[1].Running,
			"got %+v, want a run in progress and those that have ended", now)
		id := now[0].ID
		assert.Has(t, runAt(t, home, "report", "list").want(t, 0).stdout, "  running")
		runAt(t, home, "report", "delete", id).want(t, 2).says(t, "has not ended", "hint: ")
		s.signal(syscall.SIGKILL)
		<-s.done
		assert.Equal(t, strings.Count(runAt(t, home, "report", "list").want(t, 0).stdout, "  killed"), i+1, "runs that list marks as killed")
		text := runAt(t, home, "report", "show", id).want(t, 0).stdout
		assert.Has(t, text, "the program was killed", "NOT TRUSTED", "partial", "acked", id)
		assert.Has(t, runAt(t, home, "report", "show", "last", "--json").want(t, 0).stdout, id) // it ended last
		d := runAt(t, home, "report", "export", id, "--as", "json").want(t, 0).document(t)
		assert.True(t, d.Totals.Acked != 0 && d.Totals.Sent == d.Totals.Acked+d.Totals.Failed+d.Totals.Unknown &&
			len(d.Intervals) >= 3, "%d intervals of %+v are left", len(d.Intervals), d.Totals)
	}
	runAt(t, home, "report", "show", before[0].ID).want(t, 0)
	runAt(t, home, "report", "check").want(t, 0)
	again := runAt(t, home, "report", "export", "label.n=first", "--as", "json").want(t, 0).stdout
	assert.True(t, again == first, "an earlier report has changed")
}

// awaitIntervals waits until the run in progress has stored n intervals.
func awaitIntervals(t *testing.T, home string, n int) {
	t.Helper()
	end := time.After(time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, r := range list(t, home) {
			if !r.Running {
				continue
			}
			if e := runAt(t, home, "report", "show", r.ID, "--json"); e.code == 0 && strings.Count(e.stdout, `"phase": "measurement"`) >= n {
				return
			}
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%d intervals were not stored within a minute", n)
		}
	}
}

// TestKillsAtRandomMoments kills the program at random moments of short runs: starting, measuring, storing
// its report, ending. The reports of all runs that had ended are complete.
func TestKillsAtRandomMoments(t *testing.T) {
	t.Parallel()
	rounds := 20
	if text := os.Getenv("CARRONADE_TEST_KILLS"); text != "" {
		rounds = assert.Value(strconv.Atoi(text))(t)
	}
	home := t.TempDir()
	length := runAt(t, home, "run", "null://", "--rate", "1k/s", "--for", "200ms", "--quiet").wantOneOf(t, 0, 3).elapsed
	r := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)) //nolint:gosec // a moment
	complete := 1
	const parallel = 2
	for range rounds / parallel {
		var running [parallel]*session
		for k := range running {
			running[k] = prepare(t, "run", "null://", "--rate", "1k/s", "--for", "200ms", "--interval", "50ms", "--quiet")
			running[k].home = home
			running[k].begin()
		}
		pause(t, time.Duration(r.Int64N(int64(length+length/2))))
		for _, s := range running {
			_ = s.cmd.Process.Kill() // fails if it has ended
		}
		for _, s := range running {
			<-s.done
			if s.stdout.String() != "" && s.err == nil {
				complete++
			}
		}
	}
	runAt(t, home, "report", "check").want(t, 0)
	ended, killed := 0, 0
	for _, l := range list(t, home) {
		switch {
		case l.Running:
			t.Errorf("report %s is marked as in progress", l.ID)
		case l.Fields["stopped"] == "killed":
			killed++
		default:
			ended++
		}
	}
	assert.True(t, ended >= complete, "%d runs ended with their reports, and there are %d reports", complete, ended)
	t.Logf("%d kills: %d runs had ended, %d left a partial report", rounds, ended, killed)
}

// TestHourIsSmall: verified round trips at 20,000 events a second take little memory, however
// long they run. CARRONADE_TEST_HOUR says how long: 1h in make soak.
func TestHourIsSmall(t *testing.T) {
	long, err := time.ParseDuration(os.Getenv("CARRONADE_TEST_HOUR"))
	if err != nil {
		t.Skip("CARRONADE_TEST_HOUR=1h runs an hour")
	}
	const (
		most    = 150 << 20
		settled = 5 * time.Minute // until then buffers and the heap grow to their size
		growth  = 48 << 20        // after that: the series, at most 16 MiB, and buffers that a busy machine needs
	)
	broker := startStandin(t, "kafka", "--in-memory", "--retain", "16MiB", "--topic", "hour:4", "--listen", "127.0.0.1:0")
	s := start(t, "run", "kafka://"+broker.addr+"/hour", "--op", "roundtrip", "--verify", "--rate", "20k/s", "--for", long.String(), "--quiet", "--json")
	e := s.wait(long+10*time.Minute).wantOneOf(t, 0, 3)
	var d struct {
		Generator struct {
			MaxRSS uint64 `json:"max_rss_bytes"`
		} `json:"generator"`
		Intervals []struct {
			EndS      float64 `json:"end_s"`
			Generator struct {
				RSS uint64 `json:"rss_bytes"`
			} `json:"generator"`
		} `json:"intervals"`
	}
	assert.OK(t, json.Unmarshal([]byte(e.stdout), &d))
	n := len(d.Intervals)
	assert.Must(t, n >= 5, "got %d intervals", n)
	first, last := d.Intervals[0], d.Intervals[n-1]
	for i := range d.Intervals {
		if iv := d.Intervals[i]; iv.EndS <= settled.Seconds() {
			first = iv
		}
		if i%max(n/12, 1) == 0 {
			t.Logf("after %4.0f s: %d MiB", d.Intervals[i].EndS, d.Intervals[i].Generator.RSS>>20)
		}
	}
	t.Logf("at most %d MiB", d.Generator.MaxRSS>>20)
	assert.True(t, d.Generator.MaxRSS <= most, "it took %d bytes, want at most %d", d.Generator.MaxRSS, most)
	assert.True(t, last.Generator.RSS <= first.Generator.RSS+growth,
		"from %.0f s to %.0f s it grew from %d to %d bytes, want at most %d more", first.EndS, last.EndS, first.Generator.RSS, last.Generator.RSS, growth)
}

// TestDay runs examples/day.sh, a day's work of a new user. The script itself requires the exit code of every command.
func TestDay(t *testing.T) {
	testkit.OnlyConformance(t, "takes a minute, alone on the machine: the tests of internal/cli run the examples of all documents")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "../../examples/day.sh")
	cmd.Env = append(testkit.PythonEnv(t), "CARRONADE="+program, "NO_COLOR=1")
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // it ends its servers
	cmd.WaitDelay = 10 * time.Second
	out, err := cmd.CombinedOutput()
	assert.OK(t, err, "examples/day.sh:\n%s", out)
	for _, want := range []string{
		`(PASS|holds) +verify: nothing was lost or altered`, // the demo
		`(PASS|holds|CANNOT TELL|cannot tell) +p99 < 1 s: `,
		`hold the limits, up to|holds the limits`, // steps
		`(?m)^report id .* acks$`,
		`(?m)^report id .* compression$`,
		`(FAIL|BROKEN) +p50 < 100 ms: `,
		`verdict +(worse|cannot tell): response p99: `,
		`lost = 0: `,
		`(?m)^20000 records sent, `,
		`(?m)^carronade_acked_events_total\{.*\} 4000$`,
		`exit code of the run: (0|3)`,
		`batches`,
		`(?m)^day.sh: done$`,
	} {
		assert.True(t, regexp.MustCompile(want).Match(out), "examples/day.sh does not print %s:\n%s", want, out)
	}
}

// TestInterrupted presses Ctrl-C at each stage of a run: there is a report each time, and nothing hangs.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	url := topicURL(broker, broker.CreateTopic(t, 2, 1))
	for _, engine := range engines {
		for _, tt := range []struct{ name, args string }{
			{"warming up", "--rate 1000/s --warmup 60s --for 1m"},
			{"measuring", "--rate 1000/s --for 1m"},
			{"full speed", ""},
			{"consuming", "--op consume --idle-timeout 1m"},
		} {
			t.Run(engine+"/"+tt.name, func(t *testing.T) {
				t.Parallel()
				s := start(t, append([]string{"run", url, "--engine", engine, "--json"}, strings.Fields(tt.args)...)...)
				s.awaitStderr(progressText)
				s.signal(os.Interrupt)
				d := s.wait(15*time.Second).want(t, 130).document(t)
				all := d.wholeRun()
				assert.True(t, d.Stopped != "" && (all.Acked > 0 || tt.name == "consuming") && d.Totals.Acked == d.Totals.Sent &&
					(tt.name != "warming up" || d.Totals.Sent == 0), "stopped by %q with %+v, its measurement %+v", d.Stopped, all, d.Totals.counts)
			})
		}
	}
}

// TestInterruptedFrozen presses Ctrl-C while a broker is frozen: in the drain, and twice.
func TestInterruptedFrozen(t *testing.T) {
	t.Parallel()
	c := kafkatest.Start(t, kafkatest.Config{Heap: "512m"})
	for _, engine := range engines {
		begin := func(t *testing.T, flags ...string) *session {
			topic := c.CreateTopic(t, 1, 1)
			s := start(t, append([]string{"run", topicURL(c, topic), "--engine", engine, "--rate", "200/s", "--for", "3s", "--drain", "6s", "--json"}, flags...)...)
			s.awaitStderr(progressText)
			c.Node(1).Freeze(t)
			t.Cleanup(func() { c.Node(1).Thaw(t) })
			return s
		}
		t.Run(engine+"/draining", func(t *testing.T) {
			s := begin(t)
			pause(t, 4*time.Second) // the measurement is over, and answers are missing
			s.signal(os.Interrupt)
			d := s.wait(15*time.Second).want(t, 130).document(t)
			assert.True(t, d.Totals.Unknown+d.Totals.Unsent != 0, "the frozen broker left no event unanswered: %+v", d.Totals.counts)
		})
		t.Run(engine+"/twice", func(t *testing.T) {
			s := begin(t, "--drain", "60s")
			pause(t, time.Second) // so that something is in flight
			s.signal(os.Interrupt)
			pause(t, 300*time.Millisecond)
			s.signal(os.Interrupt)
			s.wait(20*time.Second).want(t, 130) // the drain would last a minute
		})
	}
	t.Run("reading back", func(t *testing.T) {
		topic := c.CreateTopic(t, 1, 1)
		s := start(t, "run", topicURL(c, topic), "--for", "3s", "--size", "1KiB", "--verify", "--json")
		s.awaitStderr("reading back", "read back", "verif")
		c.Node(1).Freeze(t)
		t.Cleanup(func() { c.Node(1).Thaw(t) })
		s.signal(os.Interrupt)
		d := s.wait(15*time.Second).want(t, 130).document(t)
		assert.True(t, d.Totals.Acked > 0 && d.Ledger != nil && d.Ledger.Lost == 0,
			"totals %+v, ledger %+v: unread events are not lost", d.Totals.counts, d.Ledger)
	})
}
