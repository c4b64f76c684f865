package bench

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestSpread(t *testing.T) {
	tests := []struct {
		name string
		in   []float64
		want spread
	}{
		{"one", []float64{3}, spread{3, 3, 3, 1}},
		{"odd", []float64{5, 1, 3}, spread{3, 1, 5, 3}},
		{"even", []float64{4, 1, 3, 2}, spread{2.5, 1, 4, 4}},
	}
	for _, tt := range tests {
		assert.Same(t, spreadOf(tt.in), tt.want, "%s: spread", tt.name)
	}
	got := spreadOf(nil)
	assert.True(t, got.N == 0 && math.IsNaN(got.Median), "without numbers: got %v, want NaN", got)
}

// one is the spread of a single run.
func one(v float64) spread { return spreadOf([]float64{v}) }

func TestVerdict(t *testing.T) {
	tests := []struct {
		name string
		line line
		want string
	}{
		{"above both", line{Carronade: one(30), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "yes, and the aim"},
		{"above the first", line{Carronade: one(24), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "yes"},
		{"below", line{Carronade: one(18), Peer: "p", Theirs: one(2), Must: atLeast(10), Aim: atLeast(14)}, "**no**"},
		{"cheap", line{Carronade: one(1), Peer: "p", Theirs: one(13), Must: atMost(1.0 / 12)}, "yes"},
		{"expensive", line{Carronade: one(1), Peer: "p", Theirs: one(11), Must: atMost(1.0 / 12)}, "**no**"},
		{"no bound", line{Carronade: one(1), Peer: "p", Theirs: one(11)}, ""},
		{"only an aim", line{Carronade: one(31e6), Aim: atLeast(30e6)}, "yes, and the aim"},
		{"only an aim, missed", line{Carronade: one(29e6), Aim: atLeast(30e6)}, "aim missed"},
		{"median", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atMost(5)}, "yes"},
		{"worst", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atMost(5), Worst: true}, "**no**"},
		{"worst of a lower bound", line{Carronade: spreadOf([]float64{1, 2, 9}), Must: atLeast(2), Worst: true}, "**no**"},
		{"no numbers of ours", line{Carronade: spreadOf(nil), Must: atMost(5)}, "not measured"},
		{"no numbers of theirs", line{Carronade: one(1), Peer: "p", Theirs: spreadOf(nil), Must: atLeast(5)}, "not measured"},
		{"a fault", line{Carronade: one(1), Must: atMost(5), Fault: "it broke"}, "not measured"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.line.verdict(), tt.want, "%s", tt.name)
	}
}

func TestTable(t *testing.T) {
	got := Table([]line{
		{Work: "produce", Metric: eventsPerS, Carronade: spreadOf([]float64{38.56e6, 30e6, 40e6}), Peer: "java", Theirs: spreadOf([]float64{1.5e6, 1.4e6, 1.6e6}), Must: atLeast(10), Aim: atLeast(14)},
		{Work: "produce", Metric: eventsPerS, Carronade: spreadOf([]float64{38.56e6, 30e6, 40e6}), Peer: "kcat", Theirs: spreadOf([]float64{4e6, 0.9e6, 4e6}), Must: atLeast(10)},
		{Work: "produce", Metric: cpuPerEvent, Carronade: one(0.02), Peer: "java", Theirs: one(1), Must: atMost(1.0 / 12)},
		{Work: "memory", Metric: maxRSS, Carronade: one(34.9 * (1 << 20)), Must: atMost(150 << 20), Worst: true},
		{Work: "open", Metric: deviation, Carronade: spreadOf([]float64{0, 0, 0}), Must: atMost(0.001)},
		{Work: "consume", Metric: eventsPerS, Fault: "java: a|b"},
		{Work: "null", Metric: eventsPerS, Carronade: one(5e6), Aim: atLeast(9e6)},
	})
	want := `| work | measure | carronade | peer | ratio | must reach |
|---|---|---|---|---|---|
| produce | events/s | 38.6 M/s (30.0..40.0) | java: 1.50 M/s (1.40..1.60) | 25.7 x | at least 10.0 x, aim 14.0 x |
| | | | kcat: 4.00 M/s (900 k/s..4.00 M/s) | 9.64 x | at least 10.0 x: **no** |
| | CPU an event | 0.0200 us | java: 1.00 us | 1/50.0 | at most 1/12.0 |
| memory | max RSS, worst run | 34.9 MiB | | | at most 150 MiB |
| open | sent, off by | 0 % | | | at most 0.100 % |
| consume | events/s | java: a/b | | | not measured |
| null | events/s | 5.00 M/s | | | aim 9.00 M/s: missed |
`
	assert.Same(t, got, want, "table")
}

func TestShow(t *testing.T) {
	tests := []struct {
		name string
		m    metric
		v    float64
		want string
	}{
		{"millions", eventsPerS, 57_412_345, "57.4 M/s"},
		{"nearly a million", eventsPerS, 999_900, "1.00 M/s"},
		{"few", eventsPerS, 12, "12.0 /s"},
		{"bytes", bytesPerS, 4.243e9, "4.24 GB/s"},
		{"a share", cpuShare, 0.0953, "9.53 %"},
		{"a time", sendDelayP50, 56, "56.0 us"},
		{"shrunk", growth, -(1 << 19), "-0.500 MiB"},
		{"nothing", growth, 0, "0 MiB"},
	}
	for _, tt := range tests {
		assert.Equal(t, tt.m.show(tt.v), tt.want, "%s", tt.name)
	}
}

func TestBest(t *testing.T) {
	r := &results{
		samples: map[string][]sample{"a": {{eventsPerS: 1}}, "b": {{eventsPerS: 3}}, "c": {{eventsPerS: 2}}},
		faults:  map[string]error{"d": errors.New("it\nbroke")},
	}
	assert.Equal(t, r.best(eventsPerS, "d", "a", "b", "c"), "b", "as the best")
	assert.Equal(t, r.best(eventsPerS, "d"), "d")
	assert.Equal(t, r.fault("a", "d"), "d: it; broke", "the fault")
}

// TestGroups checks that groups have different names and measure something.
func TestGroups(t *testing.T) {
	seen := map[string]bool{}
	for _, g := range groups {
		assert.True(t, !seen[g.name] && g.measure != nil && strings.TrimSpace(g.name) != "",
			"group %q exists twice, or does nothing", g.name)
		seen[g.name] = true
	}
	assert.True(t, len(seen) != 0, "no groups")
}

func TestPublish(t *testing.T) {
	page := "# Speed\n\n" + tableBegins + "old\n" + tableEnds + "\nmore\n"
	tests := []struct {
		name, before, want string
		bad                bool
	}{
		{"a page", page, "# Speed\n\n" + tableBegins + "\nnew\n\n" + tableEnds + "\nmore\n", false},
		{"another file", "old\n", "new\n", false},
		{"no end", "# Speed\n" + tableBegins + "old\n", "# Speed\n" + tableBegins + "old\n", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "page.md")
			assert.OK(t, os.WriteFile(path, []byte(tt.before), 0o644))
			err := Publish(path, "new\n")
			assert.True(t, (err != nil) == tt.bad, "got error %v, want one: %v", err, tt.bad)
			got := assert.Value(os.ReadFile(path))(t)
			assert.Same(t, string(got), tt.want, "page")
		})
	}
	fresh := filepath.Join(t.TempDir(), "new.md")
	assert.Equal(t, Publish(fresh, "new\n"), nil)
	// The page that make bench updates has a place for the table.
	doc := assert.Value(os.ReadFile("../../docs/performance.md"))(t)
	assert.True(t, strings.Contains(string(doc), tableBegins) && strings.Contains(string(doc), tableEnds),
		"docs/performance.md has no place for the table")
}

func TestMain(m *testing.M) {
	Hook()
	os.Exit(m.Run())
}

// BenchmarkSpeed makes the table. It fails if a line misses its bound or could not be measured.
func BenchmarkSpeed(b *testing.B) {
	s := assert.Value(FromEnv())(b)
	u := NewSuite(b, s)
	u.Measure(b)
	text := u.Document(b)
	fmt.Print("\n", text, "\n", u.Commands(), "\n")
	if s.Out != "" {
		assert.OK(b, Publish(s.Out, text))
	}
	for _, f := range u.Failed() {
		b.Error(f)
	}
}

// Real output of Kafka 4.3.1's tools.
const (
	producerPerfOut = `Warmup first 1000000 records. Steady state results will print after the complete test summary.
4000000 records sent, 1092597.650915 records/sec (104.20 MB/sec), 7.36 ms avg latency, 525.00 ms max latency, 5 ms 50th, 19 ms 95th, 43 ms 99th, 82 ms 99.9th.
3000000 steady state records sent, 1536885.245902 records/sec (146.57 MB/sec), 6.55 ms avg latency, 117.00 ms max latency, 4 ms 50th, 17 ms 95th, 44 ms 99th, 60 ms 99.9th.
`
	consumerPerfOut = `2026-11-21 10:36:08:573, 2026-11-21 10:36:18:041, 286.1023, 30.2178, 3000000, 316856.7807, 1013, 8455, 33.8382, 354819.6334
`
)

func TestReadProducerPerf(t *testing.T) {
	got, err := readProducerPerf(producerPerfOut)
	assert.True(t, err == nil && got == 1536885.245902, "got %v, %v, want the steady state's 1536885.245902", got, err)
	_, err = readProducerPerf("4000000 records sent, 1.0 records/sec")
	assert.True(t, err != nil, "an output without a steady state passed")
}

func TestReadConsumerPerf(t *testing.T) {
	events, rate, fetchRate, err := readConsumerPerf(consumerPerfOut)
	assert.True(t, err == nil && events == 3_000_000 && rate == 316856.7807 && fetchRate == 354819.6334,
		"got %d, %v, %v, %v", events, rate, fetchRate, err)
	for _, bad := range []string{"", "WARN no messages", strings.Replace(consumerPerfOut, "3000000", "many", 1)} {
		_, _, _, err := readConsumerPerf(bad)
		assert.True(t, err != nil, "%q passed", bad)
	}
}

func TestReadDocument(t *testing.T) {
	const good = `{"totals":{"sent":10,"acked":10,"elapsed_s":2,"events_per_s":5,"bytes_per_s":500},"send_delay":{"p50_us":56},"trust":{"ok":true}}`
	d := assert.Value(readDocument(&processResult{out: []byte(good)}))(t)
	assert.True(t, d.Totals.EventsPS == 5 && d.SendDelay.P50 == 56 && d.Trust.OK, "got %+v", d)
	assert.Value(readDocument(&processResult{out: []byte(good), code: 3}))(t, "an untrusted run is a result")
	for name, e := range map[string]*processResult{
		"refused":         {out: []byte(good), code: 2},
		"no report":       {out: []byte("Workload")},
		"failures":        {out: []byte(`{"totals":{"acked":10,"failed":1}}`)},
		"unknown events":  {out: []byte(`{"totals":{"acked":10,"unknown":1}}`)},
		"no events":       {out: []byte(`{"totals":{}}`)},
		"a limit was hit": {out: []byte(good), code: 1},
	} {
		_, err := readDocument(e)
		assert.True(t, err != nil, "%s: it passed", name)
	}
}

func TestStatusBytes(t *testing.T) {
	const status = "Name:\tcarronade\nVmHWM:\t   21684 kB\nVmRSS:\t   20480 kB\n"
	assert.Equal(t, statusBytes([]byte(status), "VmRSS:"), uint64(20<<20))
	assert.Equal(t, statusBytes([]byte("Name:\tx\n"), "VmRSS:"), 0, "without the line")
}

func TestSettings(t *testing.T) {
	tests := []struct {
		name, key, value string
		bad              bool
	}{
		{"rounds", "BENCH_RUNS", "7", false},
		{"no rounds", "BENCH_RUNS", "0", true},
		{"rounds as a word", "BENCH_RUNS", "five", true},
		{"a scale", "BENCH_SCALE", "0.2", false},
		{"no scale", "BENCH_SCALE", "0", true},
		{"not a number", "BENCH_SCALE", "NaN", true},
		{"rows", "BENCH_ROWS", "1 KiB|memory", false},
		{"half a pattern", "BENCH_ROWS", "(", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv(tt.key, tt.value)
			_, err := FromEnv()
			assert.Equal(t, (err != nil), tt.bad, "got error %v, want one", err)
			assert.True(t, err == nil || strings.Contains(err.Error(), tt.key), "the error does not name %s: %v", tt.key, err)
		})
	}
	s := Settings{Scale: 0.1}
	assert.Equal(t, s.scaled(5*time.Second), time.Second, "for 5 s at a tenth")
	assert.Equal(t, s.records(20_000_000), 2_000_000, "records")
}

// TestLoop runs the bare writer against its sink, as processes.
func TestLoop(t *testing.T) {
	u := &Suite{dir: t.TempDir()}
	r, e, err := u.loop(t.Context(), "tcp-writer", "-to", startSink(t).addr, "-for", "50ms")
	assert.OK(t, err)
	assert.True(t, r.Bytes >= 1<<20 && r.seconds() >= 0.05 && e.cpu > 0,
		"got %d bytes in %v s with %v of CPU", r.Bytes, r.seconds(), e.cpu)
}

func TestReadGem(t *testing.T) {
	n, took, err := readGem("20000\n5.0001\n")
	assert.True(t, err == nil && n == 20000 && took == 5.0001, "got %v, %v, %v", n, took, err)
	for _, bad := range []string{"", "Riemann::Client::TcpSocket: connection refused", "0\n5\n", "7"} {
		_, _, err := readGem(bad)
		assert.True(t, err != nil, "%q passed", bad)
	}
}

// Real output of wrk 4.1.
const wrkOut = `Running 2s test @ http://127.0.0.1:18998/intake/v2/events
  1 threads and 8 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency    61.45us  109.38us   4.66ms   98.37%
    Req/Sec   128.05k    10.13k  137.95k    95.24%
  268696 requests in 2.10s, 19.73MB read
Requests/sec: 127984.06
Transfer/sec:      9.40MB
`

func TestReadWrk(t *testing.T) {
	n, perS, err := readWrk(wrkOut)
	assert.True(t, err == nil && n == 268696 && perS == 127984.06, "got %v, %v, %v, want 268696 and 127984.06", n, perS, err)
	before, after, _ := strings.Cut(wrkOut, "Requests/sec")
	for name, bad := range map[string]string{
		"nothing":       "",
		"no count":      "Requests/sec" + after,
		"no rate":       before,
		"failures":      before + "  Non-2xx or 3xx responses: 7\nRequests/sec" + after,
		"lost":          before + "  Socket errors: connect 0, read 3, write 0, timeout 0\nRequests/sec" + after,
		"no requests":   strings.NewReplacer("268696 ", "0 ", "127984.06", "0.00").Replace(wrkOut),
		"no connection": "unable to connect to 127.0.0.1:1 Connection refused",
	} {
		n, perS, err := readWrk(bad)
		assert.True(t, err != nil, "%s: got %v and %v, want an error", name, n, perS)
	}
}

// All processes of a tree exist, and end when it is stopped.
func TestTree(t *testing.T) {
	testkit.Need(t, "a shell")
	const want = 5
	tree := assert.Value(startTree(want))(t)
	defer tree.stop()
	path := fmt.Sprintf("/proc/%d/task/%d/children", tree.pid, tree.pid)
	text, err := os.ReadFile(path)
	if err != nil {
		t.Skip("the children of a process can be read on Linux only: ", err)
	}
	children := strings.Fields(string(text))
	assert.Equal(t, len(children)+1, want, "processes")
	tree.stop()
	for _, pid := range children {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		assert.True(t, err != nil, "process %s is still there: %s", pid, stat)
	}
}

// The agents' loop sends events and reports their number.
func TestAgentsLoop(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if _, err := io.Copy(io.Discard, r.Body); err == nil {
				requests.Add(1)
			}
		}
		w.WriteHeader(http.StatusAccepted)
	}))
	defer s.Close()
	u := &Suite{log: io.Discard}
	got, err := u.agents(goAgentsFlushed, strings.TrimPrefix(s.URL, "http://"), 100*time.Millisecond, "-flush", "10").run(t.Context())
	assert.True(t, err == nil && got[eventsPerS] > 0 && got[cpuPerEvent] > 0 && requests.Load() >= 4,
		"got %v, %v, %d requests, want events and at least one request of each agent", got, err, requests.Load())
}
