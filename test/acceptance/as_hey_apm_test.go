//go:build conformance

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestAsHeyAPM runs hey-apm's commands against a server, parses the output by its format only, and finds the reports' sums in it.
func TestAsHeyAPM(t *testing.T) {
	t.Parallel()
	const token = "canary-of-hey-apm"
	home := t.TempDir()
	file := filepath.Join(home, "token")
	assert.OK(t, os.WriteFile(file, []byte(token), 0o600))
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--v1", "--secret-token", "file:"+file, "--error", "queue-full@30%", "--delay", "40ms")
	reported := func(t *testing.T, args ...string) (e ended, ds []document) {
		t.Helper()
		dir := t.TempDir()
		args = append([]string{"as", "hey-apm", "--report-json", filepath.Join(dir, "report.json")}, args...)
		codes := []int{1, 3} // some are refused
		if slices.Contains(args, "--strict") {
			codes = []int{0}
		}
		e = run(t, args...).wantOneOf(t, codes...)
		paths, _ := filepath.Glob(filepath.Join(dir, "*.json"))
		for _, path := range paths { // in their order
			data := assert.Value(os.ReadFile(path))(t)
			assert.True(t, !strings.Contains(string(data), token) && !strings.Contains(e.stdout+e.stderr, token),
				"the token is in the report or the output")
			var d document
			assert.OK(t, json.Unmarshal(data, &d))
			ds = append(ds, d)
		}
		return e, ds
	}
	header := "Authorization: Bearer " + token

	t.Run("a profile", func(t *testing.T) {
		t.Parallel()
		e, ds := reported(t, "-base-url", "http://"+server.addr+"/", "-header", header, "-profile", "tiny", "-run", "2s")
		tables := tablesOf(t, e.stdout)
		assert.Must(t, len(tables) == 3 && len(ds) == 3, "%d tables and %d reports, want 3:\n%s", len(tables), len(ds), e.stdout)
		for i, d := range ds {
			tables[i].checkAgainst(t, &d)
			assert.True(t, d.Totals.Acked != 0, "nothing was acked: %+v", d.Totals)
		}
	})
	t.Run("a test", func(t *testing.T) {
		t.Parallel()
		for _, strict := range []bool{false, true} {
			args := []string{"-base-url", "http://" + server.addr, "-header", header, "test", "2s", "1", "2", "3", "4"}
			if strict {
				args = append([]string{"--strict"}, args...)
			}
			e, ds := reported(t, args...)
			m := regexp.MustCompile(`\n(\d+\.\d\d) ms / request\n`).FindStringSubmatch(e.stdout)
			assert.Must(t, m != nil && len(ds) == 1, "%d reports, and:\n%s", len(ds), e.stdout)
			ms, _ := strconv.ParseFloat(m[1], 64)
			d := &ds[0]
			if !strict {
				tablesOf(t, e.stdout)[0].checkAgainst(t, d)
				want := d.Service.MeanUS / 1e3
				assert.True(t, math.Abs(ms-want) <= 0.006, "%v ms a request, want %v", ms, want)
				line := fmt.Sprintf(" , accepted %.1fkb / sec\n", d.Totals.BytesPerS/1e3)
				assert.True(t, strings.Contains(e.stdout, line), "no %q in\n%s", line, e.stdout)
				var pushed float64
				m = regexp.MustCompile(`\npushed ([\d.]+)kb / sec`).FindStringSubmatch(e.stdout)
				if m != nil {
					pushed, _ = strconv.ParseFloat(m[1], 64)
				}
				accepted := d.Totals.EventsPerS * float64(d.accepted()) / float64(d.Totals.Acked) // batches a second
				want = d.Totals.BytesPerS / 1e3 * d.Totals.AnswersPerS / accepted
				assert.True(t, math.Abs(pushed-want) <= want/50, "pushed %v kb a second, want about %v:\n%s", pushed, want, e.stdout)
			} else if took := ms * float64(d.accepted()) / 1e3; took < d.Totals.ElapsedS*0.999 || took > e.elapsed.Seconds() {
				// 1000/rate, and the rate is over the time until everything had stopped
				t.Errorf("%v ms a request are %.3f s for the %d accepted ones; sending took %v s, and the program %v", ms, took, d.accepted(), d.Totals.ElapsedS, e.elapsed)
			}
		}
	})
	t.Run("agents", func(t *testing.T) {
		t.Parallel()
		e, ds := reported(t, "-apm-url", "http://"+server.addr, "-apm-secret", token, "-run", "2s", "-tf", "1ms", "-ef", "2ms", "-sm", "3", "-sx", "3", "-t", "1000")
		assert.Must(t, len(ds) == 2, "%d reports, want 2", len(ds))
		got := map[string]float64{}
		for line := range strings.Lines(e.stdout) {
			m := regexp.MustCompile(`^([a-z -][a-z %-]*?) \.+ ([\d.]+)\n$`).FindStringSubmatch(line)
			if m != nil {
				got[m[1]], _ = strconv.ParseFloat(m[2], 64)
			}
		}
		tx, errs := ds[0].Totals, ds[1].Totals
		for name, want := range map[string]uint64{
			"transactions sent": tx.Sent / 4, "spans sent": tx.Sent / 4 * 3, "spans sent per transaction": 3, "errors sent": errs.Sent,
			"total events sent": tx.Sent + errs.Sent, " - accepted": tx.Acked + errs.Acked, "total requests": tx.Batches + errs.Batches, "failed": 0,
		} {
			v, ok := got[name]
			assert.True(t, ok && v == float64(want), "%q is %v, want %d", name, v, want)
		}
		assert.True(t, tx.Sent+tx.Dropped == 4000 && tx.Acked > 0 && strings.Contains(e.stdout, "queue is full"),
			"%+v, and:\n%s", tx, e.stdout)
	})
}

// A table is what hey-apm prints about one kind of requests.
type table struct {
	codes map[int]uint64
	total uint64
	rps   float64
}

func tablesOf(t *testing.T, text string) (out []table) {
	t.Helper()
	head := regexp.MustCompile(`^https?://\S+ (\d+)\n$`)
	code := regexp.MustCompile(`^  \[(\d{3})\]\t(\d+) responses \(([\d.]+)%\) \n$`)
	sum := regexp.MustCompile(`^  total\t(\d+) responses \(([\d.]+) rps\)\n$`)
	for line := range strings.Lines(text) {
		switch {
		case head.MatchString(line):
			out = append(out, table{codes: map[int]uint64{}})
		case code.MatchString(line):
			m := code.FindStringSubmatch(line)
			c, _ := strconv.Atoi(m[1])
			out[len(out)-1].codes[c], _ = strconv.ParseUint(m[2], 10, 64)
		case sum.MatchString(line):
			m := sum.FindStringSubmatch(line)
			last := &out[len(out)-1]
			last.total, _ = strconv.ParseUint(m[1], 10, 64)
			last.rps, _ = strconv.ParseFloat(m[2], 64)
		}
	}
	return out
}

func (tb *table) checkAgainst(t *testing.T, d *document) {
	t.Helper()
	var total uint64
	for _, s := range d.Totals.Statuses {
		total += s.Batches
		assert.Equal(t, tb.codes[s.Code], s.Batches, "batches with the code %d", s.Code)
	}
	assert.True(t, tb.total == total && len(tb.codes) == len(d.Totals.Statuses),
		"total %d, the report has %d: %v and %v", tb.total, total, tb.codes, d.Totals.Statuses)
	want := d.Totals.AnswersPerS
	assert.True(t, math.Abs(tb.rps-want) <= 0.006 && want > 0, "%v rps, the report has %v", tb.rps, want)
}

func (d *document) accepted() (n uint64) {
	for _, s := range d.Totals.Statuses {
		if s.Code == http.StatusAccepted {
			n += s.Batches
		}
	}
	return n
}

// Given the address of Elasticsearch and the server's process, the test command prints counts of documents
// and the server's memory, and its numbers are those of the report.
func TestAsHeyAPMUnderTest(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0", "--delay", "20ms")
	counts := 0
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"version": map[string]any{"number": "6.8.23"}, "status": "green", "count": 100}
		if strings.Contains(r.URL.Path, "_count") {
			if counts++; counts > 1 {
				answer["count"] = 109
			}
			assert.True(t, strings.HasPrefix(r.URL.Path, "/apm-*,traces-apm*,"), "counted in %s", r.URL.Path)
		}
		err := json.NewEncoder(w).Encode(answer)
		assert.True(t, err == nil, "%v", err)
	}))
	t.Cleanup(store.Close)
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, "as", "hey-apm", "--report-json", file, "-base-url", "http://"+server.addr, "-apm-es-url", store.URL,
		"-system-pid", strconv.Itoa(server.cmd.Process.Pid), "test", "1s", "1", "2", "3", "2").wantOneOf(t, 0, 3)
	data := assert.Value(os.ReadFile(file))(t)
	d := assert.Value(parseDocument(string(data)))(t)
	m := regexp.MustCompile(`\n\n(\d+) docs indexed \((\d+\.\d\d) / sec\)  \((\d+\.\d\d)% of expected\)\n\d+\.\d\d ms / request\n` +
		`([\d.]+Mb) \(max RSS\)\n(\d+\.\d{3}) memory efficiency \(accepted data volume per minute / memory used\)\nsaving report\nreport \S+ saved in \S+\n\z`).FindStringSubmatch(e.stdout)
	assert.Must(t, m != nil && d.Indexed != nil && d.System != nil && d.System.Memory != nil,
		"indexed %+v, system %+v, and:\n%s%s", d.Indexed, d.System, e.stdout, e.stderr)
	want := []string{
		"9", m[2], fmt.Sprintf("%.2f", 900/float64(d.wholeRun().Acked)),
		fmt.Sprintf("%.1fMb", float64(d.System.PeakRSS)/1e6), fmt.Sprintf("%.3f", *d.System.Memory),
	}
	for i, w := range want {
		assert.Equal(t, m[i+1], w, "what it prints:\n%s", e.stdout)
	}
}

// The test command, in place of apm switch -fcm axw/trace REV, fetches the remote, and builds and tests that
// revision, which is older than the branch.
func TestAsHeyAPMKeepsTheRevision(t *testing.T) {
	t.Parallel()
	theirs, own := commitRepo(t, "trace"), commitRepo(t, "main")
	git := func(dir string, args ...string) string {
		t.Helper()
		out := assert.Value(exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@localhost"}, args...)...).Output())(t, "git %v", args)
		return strings.TrimSpace(string(out))
	}
	writeFile(t, filepath.Join(theirs, "VERSION"), "of the revision\n")
	git(theirs, "commit", "-qam", "two")
	rev := git(theirs, "rev-parse", "HEAD")
	writeFile(t, filepath.Join(theirs, "VERSION"), "of the branch\n")
	git(theirs, "commit", "-qam", "three")
	git(own, "remote", "add", "axw", theirs)
	addr := "127.0.0.1:" + freePort(t)
	dir := t.TempDir()
	file, built := filepath.Join(dir, "report.json"), filepath.Join(dir, "built")
	run(t, "as", "hey-apm", "--report-json", file, "-base-url", "http://"+addr, "-system-git", own, "-system-fetch", "axw", "-system-checkout", rev,
		"-system-build", "cp VERSION "+built, "-system-cmd", program+" standin apm --listen "+addr, "test", "300ms", "1", "2", "3", "4").wantOneOf(t, 0, 3)
	text, err := os.ReadFile(built)
	assert.True(t, err == nil && string(text) == "of the revision\n", "it built %q, %v", text, err)
	data := assert.Value(os.ReadFile(file))(t)
	var d struct {
		System struct{ Facts map[string]any }
	}
	decode(t, string(data), &d)
	assert.True(t, d.System.Facts["revision"] == rev, "the report is of %v, want %s", d.System.Facts["revision"], rev)
}

// The report of the test command is saved where -es-url says, and the last line says so.
func TestAsHeyAPMSavesInElasticsearch(t *testing.T) {
	t.Parallel()
	node := testkit.SharedSearch(t)
	server := startStandin(t, "apm", "--listen", "127.0.0.1:0")
	e := run(t, "as", "hey-apm", "-base-url", "http://"+server.addr, "-es-url", node.URL+"/heyapm", "-label", "round=saved", "test", "300ms", "1", "2", "3", "4").wantOneOf(t, 0, 3)
	assert.True(t, strings.HasSuffix(e.stdout, " ms / request\nsaving report\nreport indexed in elasticsearch\n"),
		"the last lines are\n%s%s", e.stdout, e.stderr)
	place := strings.Replace(node.URL, "http://", "elasticsearch://", 1) + "/heyapm"
	list := run(t, "report", "list", "--store", place, "--columns", "label.as,label.round").want(t, 0).stdout
	assert.True(t, strings.Contains(list, "hey-apm") && strings.Contains(list, "saved"), "the store has\n%s", list)
}

func runProducer(t *testing.T, code int, args ...string) (side, *document) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	e := run(t, append([]string{"as", "kafka-producer-perf-test", "--report-json", file}, args...)...)
	assert.Must(t, e.code == code || e.code == 3, "exit %d, want %d\n%s%s", e.code, code, e.stdout, e.stderr)
	s := side{who: carronadeSide, out: e.stdout, errs: e.stderr}
	forms := steadyForms
	if slices.Contains(args, "2018") { // its windows have another form
		forms = producerForms2018
	}
	assert.OK(t, s.parse(forms), "%s", e.stdout)
	data := assert.Value(os.ReadFile(file))(t)
	d := assert.Value(parseDocument(string(data)))(t)
	return s, d
}

// TestAsKafkaProducerSums: the numbers in the output agree with the report.
func TestAsKafkaProducerSums(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	for _, tt := range []struct {
		name, args string
		warm       bool
	}{
		{"a rate", "--num-records 9000 --record-size 100 --throughput 4000", false},
		{"a warm-up", "--num-records 9000 --record-size 100 --throughput 4000 --warmup-records 2000", true},
		{"as fast as it goes", "--num-records 300000 --record-size 100 --throughput -1", false},
		{"numbers, in transactions", "--num-records 3000 --payload-monotonic --throughput 2000 --transaction-duration-ms 200", false},
	} {
		t.Run(strings.ReplaceAll(tt.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			args := append(strings.Fields(tt.args), "--topic", strings.NewReplacer(" ", "-", ",", "").Replace(tt.name), "--reporting-interval", "500", "--bootstrap-server", server.addr)
			s, d := runProducer(t, 0, args...)
			total := d.wholeRun()
			times := d.Service
			if tt.name != "as fast as it goes" {
				times = d.Response
			}
			last := "total"
			wantClose(t, "records", s.number(t, "total.records"), float64(total.Acked), 0)
			if tt.warm {
				last = "steady"
				wantClose(t, "steady records", s.number(t, "steady.records"), float64(d.Totals.Acked), 0)
			}
			wantClose(t, "mean", s.number(t, last+".avg"), times.MeanUS/1e3, 0.006)
			wantClose(t, "longest", s.number(t, last+".max"), times.MaxUS/1e3, 0.006)
			wantClose(t, "median", s.number(t, last+".p50"), times.P50US/1e3, 0.501+times.P50US/1e5)
			wantClose(t, "99th", s.number(t, last+".p99"), times.P99US/1e3, 0.501+times.P99US/1e5)
			wantClose(t, "99.9th", s.number(t, last+".p999"), times.P999US/1e3, 0.501+times.P999US/1e5)
			seconds, bytes := s.number(t, "total.records")/s.number(t, "total.rate"), s.number(t, "total.mb")*(1<<20)
			began, ended := math.Inf(1), 0.0
			for _, p := range d.Phases {
				began, ended = min(began, p.StartS), max(ended, p.EndS)
			}
			wantClose(t, "seconds", seconds, ended-began, 0.002)
			wantClose(t, "bytes a second", bytes, float64(total.AckedBytes)/seconds, 0.006*(1<<20))
			if tt.warm {
				return
			}
			// The windows are the complete intervals of the report.
			var got, want []uint64
			for _, text := range s.fields["window.records"] {
				n, _ := strconv.ParseUint(text, 10, 64)
				got = append(got, n)
			}
			for _, iv := range d.Intervals {
				if iv.Phase == "measurement" && iv.EndS-iv.StartS > 0.5-1e-9 && iv.Acked > 0 {
					want = append(want, iv.Acked)
				}
			}
			assert.Must(t, len(got) == len(want), "windows of %d, the report has intervals of %d", got, want)
			for i := range got {
				assert.Equal(t, got[i], want[i], "windows of %d, the report has intervals of %d", got, want)
			}
		})
	}
}

// Failed records do not count as sent, and the exit code is 1; with --strict it is 0, as with the old tool.
func TestAsKafkaProducerFails(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	args := []string{"--topic", "large", "--num-records", "10", "--record-size", "2000000", "--throughput", "50", "--bootstrap-server", server.addr}
	for _, strict := range []bool{false, true} {
		code, given := 1, args
		if strict {
			code, given = 0, append([]string{"--strict"}, args...)
		}
		s, d := runProducer(t, code, given...)
		n := s.number(t, "total.records")
		assert.True(t, n == 0 && d.wholeRun().Acked == 0 && strings.Contains(s.errs, "(10 records)"), "%g records were sent of %d; %s", n, d.wholeRun().Acked, s.errs)
		assert.Equal(t, s.fields["total.avg"][0], map[bool]string{false: "0.00", true: "NaN"}[strict], "the mean of no records")
	}
}

// Ctrl-C ends the program as it ends a JVM: with exit code 130 and no summary. The report is kept.
func TestAsKafkaProducerInterrupted(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory")
	file := filepath.Join(t.TempDir(), "report.json")
	s := start(t, "as", "kafka-producer-perf-test", "--report-json", file, "--topic", "t", "--num-records", "1000000", "--record-size", "10", "--throughput", "100",
		"--reporting-interval", "400", "--bootstrap-server", server.addr)
	s.awaitStdout(1, " records sent, ")
	s.signal(syscall.SIGINT)
	e := s.wait(runTimeout).want(t, 130)
	got := side{out: e.stdout}
	err := got.parse(producerForms)
	assert.True(t, err == nil && len(got.lines) <= 0 && len(got.fields["window.records"]) != 0, "%v, lines %q:\n%s", err, got.lines, e.stdout)
	assert.Value(os.Stat(file))(t)
}

// enoughRecords is the number of records in which no two have the same value.
const enoughRecords = 100_000

// equalValues reads n records of a topic and returns how many of them have the value of an earlier one.
func equalValues(t *testing.T, addr, topic string, n int) (equal int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(addr), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableClientMetrics()))(t)
	defer cl.Close()
	seen := make(map[string]bool, n)
	for read := 0; read < n; {
		fetches := cl.PollFetches(ctx)
		assert.OK(t, fetches.Err(), "read %d of %d records", read, n)
		fetches.EachRecord(func(r *kgo.Record) {
			if read++; seen[string(r.Value)] {
				equal++
			}
			seen[string(r.Value)] = true
		})
	}
	return equal
}

// awaitRecords waits until a topic has n records.
func awaitRecords(t *testing.T, addr, topic string, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), runTimeout)
	defer cancel()
	cl := assert.Value(kgo.NewClient(kgo.SeedBrokers(addr), kgo.DisableClientMetrics()))(t)
	defer cl.Close()
	for has := int64(0); has < n; {
		has = 0
		if ends, err := kadm.NewClient(cl).ListEndOffsets(ctx, topic); err == nil {
			ends.Each(func(o kadm.ListedOffset) { has += max(o.Offset, 0) })
		}
		select {
		case <-ctx.Done():
			t.Fatalf("the topic has %d records, want %d", has, n)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// The old tools make each message as they send it, so no two are equal. So do the drop-ins, with a codec and without.
func TestAsPayloadsDiffer(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "2")
	for _, args := range []string{
		"--command-property compression.type=none", "--command-property compression.type=gzip", "--command-property compression.type=zstd",
		"--transaction-duration-ms 200", "--generation 2018 --producer-props compression.type=gzip",
	} {
		t.Run("producer "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("p" + args)
			all := append([]string{"--topic", topic, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "40", "--throughput", "-1"}, strings.Fields(args)...)
			if strings.Contains(args, "--producer-props") { // a list, which it ends
				all = append(all, "bootstrap.servers="+server.addr)
			} else {
				all = append(all, "--bootstrap-server", server.addr)
			}
			runProducer(t, 0, all...)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d records have the value of an earlier one", n, enoughRecords)
		})
	}
	for _, args := range []string{"-size=40", "-message-size=40 -compression=gzip", "-message-size=40 -workers=3"} {
		t.Run("sangrenel "+args, func(t *testing.T) {
			t.Parallel()
			topic := strings.NewReplacer(" ", "-", "=", "-").Replace("s" + args)
			s := start(t, append([]string{"as", "sangrenel", "-brokers=" + server.addr, "-topic=" + topic}, strings.Fields(args)...)...)
			awaitRecords(t, server.addr, topic, enoughRecords)
			s.signal(syscall.SIGINT)
			s.wait(runTimeout).wantOneOf(t, 0, 3)
			n := equalValues(t, server.addr, topic, enoughRecords)
			assert.True(t, n <= 0, "%d of %d messages have the value of an earlier one", n, enoughRecords)
		})
	}
}

// With a codec, a drop-in sends as many bytes as fresh encoding, and its report says that all of the codec's work was measured.
func TestAsKafkaProducerWire(t *testing.T) {
	t.Parallel()
	server := startStandin(t, "kafka", "--listen", "127.0.0.1:0", "--in-memory", "--partitions", "1")
	for _, codec := range []string{"gzip", "zstd"} {
		_, as := runProducer(t, 0, "--topic", "as-"+codec, "--num-records", fmt.Sprint(enoughRecords), "--record-size", "100", "--throughput", "-1",
			"--bootstrap-server", server.addr, "--command-property", "compression.type="+codec)
		file := filepath.Join(t.TempDir(), "report.json")
		run(t, "run", "kafka://"+server.addr+"/fresh-"+codec, "--profile", "java", "--create-topic", "auto", "--payload", "letters", "--size", "100", "--fresh",
			"--compression", codec, "--count", fmt.Sprint(enoughRecords), "--quiet", "--json-file", file).wantOneOf(t, 0, 3)
		data := assert.Value(os.ReadFile(file))(t)
		fresh := assert.Value(parseDocument(string(data)))(t)
		got, want := as.wholeRun(), fresh.wholeRun()
		perRecord, wanted := float64(got.WireBytes)/float64(got.Acked), float64(want.WireBytes)/float64(want.Acked)
		e := as.Encoding
		assert.True(t, e.Events == "fresh" && e.Codec == codec && e.CodecMeasured != nil && *e.CodecMeasured == 1, "%s: the report has the encoding %+v", codec, e)
		t.Logf("%s: %.1f bytes a record, fresh %.1f", codec, perRecord, wanted)
		wantClose(t, codec+": bytes a record", perRecord, wanted, wanted/10)
	}
}
