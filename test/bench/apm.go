package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"carronade/test/testkit"
)

// The peers of the APM rows, by their names in the table.
const (
	wrkOne          = "wrk, 1 thread"
	wrkTwo          = "wrk, 2 threads"
	goAgents        = "4 Go agents"
	goAgentsFlushed = "4 Go agents, flushed"
	repeated        = "--repeat-body"
	pipelined       = "--max-in-flight 4"
	asAgents        = "requests as large as the agents'"
	asFlushed       = "requests as large as the flushed agents'"
)

const (
	intakePath = "/intake/v2/events"
	apmClients = "8" // connections of each contestant that sends requests of ten events
)

// tenTransactions is the request of the first rows.
var tenTransactions = []string{"--events", "10", "--spans", "0", "--mix", "transaction=1", "--clients", apmClients}

// startDiscardingAPM starts the stand-in that answers 202 to everything without
// reading it.
func (u *Suite) startDiscardingAPM(b testing.TB) *server {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	s, err := serve(ctx, u.program, "standin", "apm", "--discard", "--listen", "127.0.0.1:0")
	if err != nil {
		b.Fatal("bench: start the APM stand-in: ", err)
	}
	b.Cleanup(s.stop)
	return s
}

// apmRequests is the program, sending requests to an APM Server.
func (u *Suite) apmRequests(name, what, addr string, lasts time.Duration, args ...string) contestant {
	return u.requests(name, what, "apm+http://"+addr, lasts, args...)
}

// requests is the program, sending requests.
func (u *Suite) requests(name, what, url string, lasts time.Duration, args ...string) contestant {
	args = append([]string{url, "--for", lasts.String()}, args...)
	return contestant{name, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgram(ctx, what, args...)
		if err != nil {
			return nil, err
		}
		return sample{
			requestsPerS: d.Totals.EventsPS * float64(d.Totals.Batches) / float64(d.Totals.Acked), eventsPerS: d.Totals.EventsPS,
			bytesPerS:     float64(d.Totals.WireBytes) / d.Totals.ElapsedS,
			cpuPerRequest: float64(e.cpu.Microseconds()) / float64(d.Totals.Batches), events: float64(d.Totals.Acked),
		}.cpu(e, d.Totals.Acked), nil
	}}
}

// apmRepeated compares repeating one body with a tool that does only that.
func (u *Suite) apmRepeated(b testing.TB) {
	s := u.startDiscardingAPM(b)
	lasts := u.scaled(5 * time.Second)
	body := u.bodyOf(b, tenTransactions...)
	r := u.alternate(b.Context(), "apm, one body repeated, 10 transactions",
		u.apmRequests(carronade, "apm, one body repeated, carronade", s.addr, lasts, append(tenTransactions, repeated)...),
		u.apmRequests(pipelined, "apm, one body repeated, carronade, pipelined", s.addr, lasts, append(tenTransactions, repeated, "--max-in-flight", "4")...),
		u.wrk(wrkOne, 1, s.addr, body, lasts),
		u.wrk(wrkTwo, 2, s.addr, body, lasts),
	)
	best := r.best(requestsPerS, wrkOne, wrkTwo)
	u.addComparison(r, carronade, best, requestsPerS, atLeast(1), atLeast(1.15))
	u.addComparison(r, carronade, best, cpuPerRequest, atMost(1), bound{})
	// With more requests in flight on a connection than wrk has: not a comparison of
	// equals, but the rate that a server can get if it supports that.
	u.addComparison(r, pipelined, best, requestsPerS, bound{}, bound{})
	u.addComparison(r, pipelined, best, cpuPerRequest, bound{}, bound{})
	u.addLine(r, bytesPerS, bound{}, bound{})
}

// apmFresh compares a new, compressed body for each request with wrk's and our
// repeated ones, and with agents whose events are all new too. An agent decides how
// many events a request has, and that determines most of an event's cost. So ours
// sends requests as large as the agents' to compare with them, and small ones to
// compare with wrk's.
func (u *Suite) apmFresh(b testing.TB) {
	s := u.startDiscardingAPM(b)
	lasts := u.scaled(5 * time.Second)
	body := u.bodyOf(b, tenTransactions...)
	sized := func(name string, agents ...string) contestant {
		n := u.agentsRequest(b, s.addr, lasts, agents...)
		return u.apmRequests(name, "apm, fresh bodies, carronade, "+name, s.addr, lasts,
			"--events", strconv.Itoa(n), "--spans", "0", "--mix", "transaction=1", "--clients", "4", "--gzip", "6")
	}
	flushed := []string{"-flush", "100"}
	r := u.alternate(b.Context(), "apm, fresh bodies, gzip, 10 transactions",
		u.apmRequests(carronade, "apm, fresh bodies, carronade", s.addr, lasts, append(tenTransactions, "--gzip", "6")...),
		u.apmRequests(pipelined, "apm, fresh bodies, carronade, pipelined", s.addr, lasts, append(tenTransactions, "--gzip", "6", "--max-in-flight", "4")...),
		u.wrk(wrkOne, 1, s.addr, body, lasts),
		u.wrk(wrkTwo, 2, s.addr, body, lasts),
		u.apmRequests(repeated, "apm, fresh bodies, carronade --repeat-body", s.addr, lasts, append(tenTransactions, repeated)...),
		u.agents(goAgents, s.addr, lasts),
		sized(asAgents),
		u.agents(goAgentsFlushed, s.addr, lasts, flushed...),
		sized(asFlushed, flushed...),
	)
	u.addComparison(r, carronade, r.best(requestsPerS, wrkOne, wrkTwo), requestsPerS, atLeast(0.6), bound{})
	u.addComparison(r, carronade, repeated, requestsPerS, atLeast(0.6), bound{})
	u.addComparison(r, asAgents, goAgents, eventsPerS, atLeast(20), bound{})
	u.addComparison(r, asAgents, goAgents, cpuPerEvent, bound{}, bound{})
	u.addComparison(r, asFlushed, goAgentsFlushed, eventsPerS, atLeast(20), bound{})
	u.addComparison(r, asFlushed, goAgentsFlushed, cpuPerEvent, bound{}, bound{})
	// Ten events per request against thousands: not a comparison of equals.
	u.addComparison(r, carronade, goAgents, eventsPerS, bound{}, bound{})
	u.addComparison(r, carronade, goAgentsFlushed, eventsPerS, bound{}, bound{})
	u.addComparison(r, pipelined, goAgents, eventsPerS, atLeast(20), bound{})
}

func (u *Suite) apmOpenLoop(b testing.TB) {
	s := u.startDiscardingAPM(b)
	u.openLoop(b, openLoopRow{"apm, open loop at 400 k/s, defaults", 400e3, 150, 0.75, bound{}}, "apm+http://"+s.addr, "--rate", "400k/s")
}

// apmLarge compares large bodies with new stamps with a writer that only writes;
// each has one connection.
func (u *Suite) apmLarge(b testing.TB) {
	s := u.startDiscardingAPM(b)
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "apm, 10x10x10 uncompressed",
		u.apmRequests(carronade, "apm, 10x10x10, carronade", s.addr, lasts, "--events", "10", "--spans", "10", "--frames", "10", "--clients", "1"),
		u.tcpWriter(b, lasts, "-sum=false"),
	)
	u.addComparison(r, carronade, tcpBare, bytesPerS, atLeast(0.7), bound{})
	u.addLine(r, eventsPerS, bound{}, bound{})
}

// watching measures the cost of watching a system: it compares a slow run that
// watches one with a run that does not.
func (u *Suite) watching(b testing.TB) {
	const processes = 20
	tree, err := startTree(processes)
	if err != nil {
		b.Fatal("bench: start a tree of processes: ", err)
	}
	b.Cleanup(tree.stop)
	args := []string{"null://", "--size", "300", "--rate", "10/s", "--for", u.scaled(20 * time.Second).String()}
	slow := func(ctx context.Context, what string, more ...string) (share float64, err error) {
		d, e, err := u.runProgram(ctx, what, append(args, more...)...)
		if err != nil {
			return 0, err
		}
		return e.cpu.Seconds() / d.Totals.ElapsedS, nil
	}
	r := u.alternate(b.Context(), "watching a tree of 20 processes, each second", contestant{carronade, func(ctx context.Context) (sample, error) {
		without, err := slow(ctx, "watching, carronade without")
		if err != nil {
			return nil, err
		}
		with, err := slow(ctx, "watching, carronade", "--system-pid", strconv.Itoa(tree.pid))
		if err != nil {
			return nil, err
		}
		return sample{cpuShare: with - without}, nil
	}})
	u.addLine(r, cpuShare, atMost(0.01), bound{})
}

// bodyOf writes the body that the program repeats to a file.
func (u *Suite) bodyOf(b testing.TB, args ...string) (path string) {
	b.Helper()
	path, body := u.sentBody(b, "apm+", http.StatusAccepted, append(args, repeated)...)
	if n := bytes.Count(body, []byte(`{"transaction":`)); n != 10 {
		b.Fatalf("bench: the program's body has %d transactions, want 10", n)
	}
	return path
}

// sentBody writes the largest body of a hundred events that the program sends to a file; the shorter ones are of
// probes. A server in this process receives them.
func (u *Suite) sentBody(b testing.TB, kind string, status int, args ...string) (path string, body []byte) {
	b.Helper()
	var mu sync.Mutex
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		mu.Lock()
		if err == nil && r.Method == http.MethodPost && len(got) > len(body) {
			body = got
		}
		mu.Unlock()
		if r.Method == http.MethodPost {
			w.WriteHeader(status)
		}
	}))
	defer s.Close()
	args = append([]string{"run", kind + s.URL, "--count", "100", "--quiet", "--json"}, args...)
	e, err := runProcess(b.Context(), false, u.program, args...)
	if err == nil {
		_, err = readDocument(e)
	}
	if err != nil {
		b.Fatal("bench: get the program's body: ", err)
	}
	mu.Lock()
	defer mu.Unlock()
	path = filepath.Join(u.dir, kind+"body")
	if err := os.WriteFile(path, body, 0o600); err != nil {
		b.Fatal("bench: make a file for a peer: ", err)
	}
	return path, body
}

// wrkScript makes wrk post a file.
const wrkScript = `local file = assert(io.open(%q, "rb"))
wrk.method, wrk.body = "POST", file:read("*a")
wrk.headers["Content-Type"] = %q
`

// wrk posts a body of APM.
func (u *Suite) wrk(name string, threads int, addr, body string, lasts time.Duration) contestant {
	return u.wrkPosts(name, threads, "http://"+addr+intakePath, "application/x-ndjson", body, lasts)
}

// wrkPosts is wrk, which repeats one request on each connection, each after the answer
// to the one before.
func (u *Suite) wrkPosts(name string, threads int, url, media, body string, lasts time.Duration) contestant {
	return contestant{name, func(ctx context.Context) (sample, error) {
		exe, err := exec.LookPath("wrk")
		if err != nil {
			return nil, fmt.Errorf("wrk is missing; install it: apt-get install wrk, or brew install wrk: %w", err)
		}
		script := filepath.Join(u.dir, "post.lua")
		if err := os.WriteFile(script, []byte(fmt.Sprintf(wrkScript, body, media)), 0o600); err != nil {
			return nil, fmt.Errorf("make a script for a peer: %w", err)
		}
		// wrk accepts only whole seconds.
		seconds := max(1, int(lasts.Round(time.Second)/time.Second))
		args := []string{"-t", strconv.Itoa(threads), "-c", apmClients, "-d", strconv.Itoa(seconds) + "s", "-s", script, url}
		u.note(filepath.Base(body)+", "+name, exe, args...)
		e, err := runSuccessfully(ctx, exe, args...)
		if err != nil {
			return nil, err
		}
		n, perS, err := readWrk(string(e.out))
		if err != nil {
			return nil, err
		}
		return sample{requestsPerS: perS, cpuPerRequest: float64(e.cpu.Microseconds()) / n}, nil
	}}
}

// What wrk 4.1 prints about its requests; wrkFault only if there were errors.
var (
	wrkCount = regexp.MustCompile(`(?m)^\s+(\d+) requests in `)
	wrkRate  = regexp.MustCompile(`(?m)^Requests/sec:\s+([0-9.]+)`)
	wrkFault = regexp.MustCompile(`(?m)^\s+(Non-2xx or 3xx responses|Socket errors): .*`)
)

// readWrk reads the number of requests, and the number per second.
func readWrk(out string) (n, perS float64, err error) {
	count, rate := wrkCount.FindStringSubmatch(out), wrkRate.FindStringSubmatch(out)
	if fault := wrkFault.FindString(out); fault != "" {
		return 0, 0, fmt.Errorf("wrk's requests failed: %s", strings.TrimSpace(fault))
	}
	if count == nil || rate == nil {
		return 0, 0, fmt.Errorf("wrk did not print its requests: %s", lastLines(out))
	}
	if n, err = strconv.ParseFloat(count[1], 64); err == nil {
		perS, err = strconv.ParseFloat(rate[1], 64)
	}
	if err == nil && !(n > 0 && perS > 0) {
		err = errors.New("wrk had no answers")
	}
	return n, perS, err
}

// agents is the loop over Elastic's agent.
func (u *Suite) agents(name, addr string, lasts time.Duration, args ...string) contestant {
	args = append([]string{"-to", "http://" + addr, "-agents", "4", "-for", lasts.String()}, args...)
	return contestant{name, func(ctx context.Context) (sample, error) {
		if name != goAgents { // loop notes only the first command of this name
			u.note("the loop of this package, "+name, os.Args[0], append([]string{loopWord, "apm-agents"}, args...)...)
		}
		r, e, err := u.loop(ctx, "apm-agents", args...)
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: float64(r.Events) / r.seconds()}.cpu(e, r.Events), nil
	}}
}

// agentsRequest is how many events the agents put into a request, according to the
// server's count of requests during a run of the agents.
func (u *Suite) agentsRequest(b testing.TB, addr string, lasts time.Duration, args ...string) int {
	b.Helper()
	ctx := b.Context()
	before, err := requestsAt(ctx, addr)
	if err != nil {
		b.Fatal("bench: count the agents' requests: ", err)
	}
	r, _, err := u.loop(ctx, "apm-agents", append([]string{"-to", "http://" + addr, "-agents", "4", "-for", lasts.String()}, args...)...)
	if err != nil {
		b.Fatal("bench: count the agents' requests: ", err)
	}
	after, err := requestsAt(ctx, addr)
	if err != nil || after <= before {
		b.Fatalf("bench: count the agents' requests: there were %d, and then %d: %v", before, after, err)
	}
	return max(1, int(r.Events/(after-before)))
}

// requestsAt is the stand-in's count of requests.
func requestsAt(ctx context.Context, addr string) (n uint64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/debug/vars", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var vars struct {
		Requests uint64 `json:"apm-server.server.request.count"`
	}
	if err := json.NewDecoder(resp.Body).Decode(&vars); err != nil {
		return 0, fmt.Errorf("read the stand-in's counters: %w", err)
	}
	return vars.Requests, nil
}

// A tree is a shell with child processes that do nothing.
type tree struct {
	pid  int
	stop func()
}

// treeScript starts $1 processes, and ends them when its input ends: so they end
// with the process that started them, however that ends.
const treeScript = `i=0
while [ $i -lt $1 ]; do sleep 3600 & all="$all $!"; i=$((i+1)); done
echo started
read end
kill $all
wait`

// startTree starts n processes in total.
func startTree(n int) (*tree, error) {
	cmd := exec.Command("sh", "-c", treeScript, "tree", strconv.Itoa(n-1))
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := testkit.Launch(cmd); err != nil {
		return nil, fmt.Errorf("start a shell: %w", err)
	}
	t := &tree{pid: cmd.Process.Pid, stop: sync.OnceFunc(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})}
	if _, err := io.ReadFull(out, make([]byte, len("started\n"))); err != nil {
		t.stop()
		return nil, fmt.Errorf("wait for the shell's processes: %w", err)
	}
	return t, nil
}
