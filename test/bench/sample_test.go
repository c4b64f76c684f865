package bench

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

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
	if _, err := readProducerPerf("4000000 records sent, 1.0 records/sec"); err == nil {
		t.Error("an output without a steady state passed")
	}
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
	if _, err := readDocument(&processResult{out: []byte(good), code: 3}); err != nil {
		t.Errorf("an untrusted run is a result: %v", err)
	}
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
		t.Run(name, func(t *testing.T) {
			n, perS, err := readWrk(bad)
			assert.True(t, err != nil, "got %v and %v, want an error", n, perS)
		})
	}
}

// All processes of a tree exist, and end when it is stopped.
func TestTree(t *testing.T) {
	testkit.Need(t, "a shell")
	const want = 5
	tree, err := startTree(want)
	assert.OK(t, err)
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
