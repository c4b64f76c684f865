package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"carronade/test/testkit"
)

// The peers of the OTLP rows, by their names in the table.
const (
	telemetrygen = "telemetrygen"
	collector    = "the Collector"
)

// telemetrygenModule is the module that the Go toolchain installs.
const telemetrygenModule = "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen@v0.161.0"

// hundredLogs is the request of these rows: the default is 100 events.
var hundredLogs = []string{"--signal", "logs", "--clients", apmClients}

// startDiscardingOTLP starts the stand-in that accepts everything without reading it; second is its address for gRPC.
func (u *Suite) startDiscardingOTLP(b testing.TB) *server {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	s, err := serve(ctx, u.program, "standin", "otlp", "--discard", "--listen", "127.0.0.1:0")
	if err != nil {
		b.Fatal("bench: start the OTLP stand-in: ", err)
	}
	b.Cleanup(s.stop)
	return s
}

// otlpHTTP compares requests with fresh times and ids with a tool that repeats one of them.
func (u *Suite) otlpHTTP(b testing.TB) {
	s := u.startDiscardingOTLP(b)
	lasts := u.scaled(5 * time.Second)
	body, _ := u.sentBody(b, "otlp+", http.StatusOK, hundredLogs...)
	posts := func(name string, threads int) contestant {
		return u.wrkPosts(name, threads, "http://"+s.addr+"/v1/logs", "application/x-protobuf", body, lasts)
	}
	r := u.alternate(b.Context(), "otlp over HTTP, 100 log records",
		u.requests(carronade, "otlp over HTTP, carronade", "otlp+http://"+s.addr, lasts, hundredLogs...), posts(wrkOne, 1), posts(wrkTwo, 2))
	best := r.best(requestsPerS, wrkOne, wrkTwo)
	u.addComparison(r, carronade, best, requestsPerS, atLeast(1), bound{})
	u.addComparison(r, carronade, best, cpuPerRequest, atMost(1), bound{})
	u.addLine(r, bytesPerS, bound{}, bound{})
}

// otlpGRPC compares calls of gRPC with the Collector project's own generator, which decides itself how many events a
// request has.
func (u *Suite) otlpGRPC(b testing.TB) {
	s := u.startDiscardingOTLP(b)
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "otlp over gRPC, log records",
		u.requests(carronade, "otlp over gRPC, carronade", "otlp+grpc://"+s.second, lasts, hundredLogs...), u.telemetrygen(s.second, lasts))
	u.addComparison(r, carronade, telemetrygen, eventsPerS, atLeast(5), bound{})
	u.addComparison(r, carronade, telemetrygen, cpuPerEvent, atMost(1.0/10), bound{})
}

// generated is the number of log records that each worker of telemetrygen says it made, in its last line.
var generated = regexp.MustCompile(`logs generated\s+\{.*?"logs": (\d+)`)

// telemetrygen is the Collector project's generator without a limit of its rate, and with a worker for each of our
// connections.
func (u *Suite) telemetrygen(addr string, lasts time.Duration) contestant {
	return contestant{telemetrygen, func(ctx context.Context) (sample, error) {
		exe, err := testkit.Make("telemetrygen-0.161.0", func(path string) error {
			cmd := exec.CommandContext(ctx, "go", "install", telemetrygenModule)
			cmd.Env = append(os.Environ(), "GOBIN="+filepath.Dir(path), "GOFLAGS=")
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("build %s: %w: %s", telemetrygenModule, err, lastLines(string(out)))
			}
			return os.Rename(filepath.Join(filepath.Dir(path), telemetrygen), path)
		})
		if err != nil {
			return nil, err
		}
		args := []string{"logs", "--otlp-endpoint", addr, "--otlp-insecure", "--workers", apmClients, "--rate", "0", "--duration", lasts.String()}
		u.note("otlp over gRPC, telemetrygen", exe, args...)
		e, err := runSuccessfully(ctx, exe, args...)
		if err != nil {
			return nil, err
		}
		made := uint64(0)
		for _, m := range generated.FindAllStringSubmatch(string(e.out)+e.stderr, -1) {
			n, _ := strconv.ParseUint(m[1], 10, 64)
			made += n
		}
		if made == 0 {
			return nil, fmt.Errorf("telemetrygen did not say how many log records it made: %s", lastLines(string(e.out)+e.stderr))
		}
		return sample{eventsPerS: float64(made) / e.wall.Seconds()}.cpu(e, made), nil
	}}
}

// otlpRate measures the cost and the send delay of an ordinary rate of requests.
func (u *Suite) otlpRate(b testing.TB) {
	s := u.startDiscardingOTLP(b)
	lasts := u.scaled(10 * time.Second)
	for _, t := range []struct{ name, url string }{{"HTTP", "otlp+http://" + s.addr}, {"gRPC", "otlp+grpc://" + s.second}} {
		work := "otlp over " + t.name + ", 1 k requests/s of 100 log records"
		r := u.alternate(b.Context(), work, contestant{carronade, func(ctx context.Context) (sample, error) {
			d, _, err := u.runProgram(ctx, work, append([]string{t.url, "--rate", "100k/s", "--for", lasts.String()}, hundredLogs...)...)
			if err != nil {
				return nil, err
			}
			if d.SendDelay == nil {
				return nil, errors.New("the report has no send delay")
			}
			return sample{cpuShare: d.Generator.CPUS / d.Totals.ElapsedS, sendDelayP99: d.SendDelay.P99}, nil
		}})
		u.addLine(r, sendDelayP99, atMost(300), bound{})
		u.addLine(r, cpuShare, atMost(0.06), bound{})
	}
}

// otlpMemory measures that a minute at full speed needs no more memory than its beginning.
func (u *Suite) otlpMemory(b testing.TB) {
	s := u.startDiscardingOTLP(b)
	for _, t := range []struct{ name, url string }{{"HTTP", "otlp+http://" + s.addr}, {"gRPC", "otlp+grpc://" + s.second}} {
		work := "otlp over " + t.name + ", memory, at full speed"
		r := u.alternate(b.Context(), work, u.resident(work, append([]string{t.url, "--for", u.scaled(62 * time.Second).String()}, hundredLogs...)...))
		u.addLine(r, maxRSS, bound{}, bound{}).Worst = true
		u.addLine(r, growth, atMost(5<<20), bound{}).Worst = true
	}
}

// collectorConfig is the configuration of a Collector that keeps nothing.
const collectorConfig = `
receivers: {otlp: {protocols: {grpc: {endpoint: %q}, http: {endpoint: %q}}}}
processors: {batch: {}}
exporters: {nop: {}}
service:
  telemetry: {metrics: {level: none}}
  pipelines: {logs: {receivers: [otlp], processors: [batch], exporters: [nop]}}
`

// otlpCollector compares our CPU with that of a real Collector that takes the requests, at full speed.
func (u *Suite) otlpCollector(b testing.TB) {
	exe, err := testkit.Make(testkit.Collector, testkit.BuildGo("../../internal/otlp/testdata/otelcol"))
	if err != nil {
		b.Fatal("bench: build the Collector: ", err)
	}
	var addrs []any
	for range 2 {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			b.Fatal("bench: find a free port: ", err)
		}
		addrs = append(addrs, ln.Addr().String())
		_ = ln.Close()
	}
	config := filepath.Join(u.dir, "collector.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, collectorConfig, addrs...), 0o600); err != nil {
		b.Fatal("bench: configure the Collector: ", err)
	}
	cmd := exec.Command(exe, "--config", config)
	if err := testkit.Launch(cmd); err != nil {
		b.Fatal("bench: start the Collector: ", err)
	}
	b.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	testkit.Until(b, "the Collector listens", func() bool {
		nc, err := net.Dial("tcp", addrs[1].(string))
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	for _, t := range []struct{ name, url string }{{"gRPC", fmt.Sprint("otlp+grpc://", addrs[0])}, {"HTTP", fmt.Sprint("otlp+http://", addrs[1])}} {
		work := "otlp over " + t.name + ", to a real Collector"
		run := u.requests(carronade, work, t.url, u.scaled(5*time.Second), hundredLogs...)
		var theirs []sample
		r := u.alternate(b.Context(), work, contestant{carronade, func(ctx context.Context) (sample, error) {
			before, err := cpuOf(cmd.Process.Pid)
			if err != nil {
				return nil, err
			}
			ours, err := run.run(ctx)
			if err != nil {
				return nil, err
			}
			after, err := cpuOf(cmd.Process.Pid)
			if err != nil {
				return nil, err
			}
			theirs = append(theirs, sample{cpuPerEvent: float64((after - before).Microseconds()) / ours[events]})
			return ours, nil
		}})
		r.samples[collector] = theirs
		u.addComparison(r, carronade, collector, cpuPerEvent, atMost(1.0/5), bound{})
		u.addLine(r, eventsPerS, bound{}, bound{})
	}
}
