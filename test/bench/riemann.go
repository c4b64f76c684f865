package bench

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The peers of the Riemann rows, by their names in the table.
const (
	riemannC    = "riemann-client"
	riemannRuby = "ruby-riemann-client"
)

// startDiscardingRiemann starts the stand-in that acks everything and keeps nothing.
func (u *Suite) startDiscardingRiemann(b testing.TB, args ...string) *server {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), 20*time.Second)
	defer cancel()
	s, err := serve(ctx, u.program, append([]string{"standin", "riemann", "--discard", "--listen", "127.0.0.1:0"}, args...)...)
	if err != nil {
		b.Fatal("bench: start the Riemann stand-in: ", err)
	}
	b.Cleanup(s.stop)
	return s
}

// riemannSingle is one event per message, answered one by one, on one connection.
func (u *Suite) riemannSingle(b testing.TB) {
	s := u.startDiscardingRiemann(b)
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "riemann, single events, one connection",
		u.producer(carronade, "riemann, single events, carronade", "riemann://"+s.addr, "--clients", "1", "--max-in-flight", "16k", "--for", lasts.String()),
		u.riemannClient(s.addr, u.records(20_000)/10),
		u.riemannGem(s.addr, lasts),
	)
	u.addLine(r, eventsPerS, atLeast(5e6), atLeast(10e6))
	u.addLine(r, cpuPerEvent, atMost(0.3), bound{})
	for _, peer := range []string{riemannC, riemannRuby} {
		u.addComparison(r, carronade, peer, eventsPerS, bound{}, bound{})
		u.addComparison(r, carronade, peer, cpuPerEvent, bound{}, bound{})
	}
}

// riemannBulk compares messages of a hundred events with a writer that only writes.
func (u *Suite) riemannBulk(b testing.TB) {
	s := u.startDiscardingRiemann(b)
	lasts := u.scaled(5 * time.Second)
	r := u.alternate(b.Context(), "riemann, messages of 100 events",
		contestant{carronade, func(ctx context.Context) (sample, error) {
			d, e, err := u.runProgram(ctx, "riemann, messages of 100, carronade", "riemann://"+s.addr, "--batch-events", "100", "--for", lasts.String())
			if err != nil {
				return nil, err
			}
			return sample{eventsPerS: d.Totals.EventsPS, bytesPerS: float64(d.Totals.WireBytes) / d.Totals.ElapsedS}.cpu(e, d.Totals.Acked), nil
		}},
		u.tcpWriter(b, lasts, "-sum=false"),
	)
	u.addComparison(r, carronade, tcpBare, bytesPerS, atLeast(0.6), atLeast(0.8))
	u.addLine(r, eventsPerS, bound{}, bound{})
}

func (u *Suite) riemannOpenLoop(b testing.TB) {
	s := u.startDiscardingRiemann(b, "--ws", "127.0.0.1:0")
	u.openLoop(b, openLoopRow{"riemann, open loop at 100 k/s, single events", 100e3, 150, 0.35, bound{}}, "riemann://"+s.addr, "--rate", "100k/s")
	u.openLoop(b, openLoopRow{"riemann over WebSocket, open loop at 20 k/s, single events", 20e3, 150, 0.50, bound{}}, "riemann+ws://"+s.second, "--rate", "20k/s")
}

func (u *Suite) riemannMemory(b testing.TB) {
	s := u.startDiscardingRiemann(b)
	r := u.alternate(b.Context(), "riemann, memory, single events at full speed",
		u.resident("riemann, memory, carronade", "riemann://"+s.addr, "--clients", "1", "--max-in-flight", "16k", "--for", u.scaled(62*time.Second).String()))
	u.addLine(r, maxRSS, atMost(80<<20), bound{}).Worst = true
	u.addLine(r, growth, atMost(5<<20), bound{}).Worst = true
}

// riemannClient is the C library's program: it sends an event for each line that it
// reads, and waits for the ack. It prints no rate, so its rate is over its total run
// time, of which connecting is a millisecond.
func (u *Suite) riemannClient(addr string, n int) contestant {
	return contestant{riemannC, func(ctx context.Context) (sample, error) {
		exe, err := exec.LookPath(riemannC)
		if err != nil {
			return nil, fmt.Errorf("riemann-client is missing; install it: apt-get install riemann-c-client: %w", err)
		}
		lines := filepath.Join(u.dir, "metrics.txt")
		if err := os.WriteFile(lines, []byte(strings.Repeat("1 ok\n", n)), 0o600); err != nil {
			return nil, fmt.Errorf("make a file for a peer: %w", err)
		}
		host, port, _ := strings.Cut(addr, ":")
		script := fmt.Sprintf("exec %s send -0 -S web -h db-1 -t load -L 60 %s %s < %s", exe, host, port, lines)
		u.note("riemann, single events, riemann-client", "sh", "-c", script)
		e, err := runSuccessfully(ctx, "sh", "-c", script)
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: float64(n) / e.wall.Seconds()}.cpu(e, uint64(n)), nil
	}}
}

// gemLoop sends events one after the other, each after the ack of the one before, for
// some seconds. The time starts when the gem is loaded and connected.
const gemLoop = `require "riemann/client"
c = Riemann::Client.new(host: ARGV[0], port: ARGV[1].to_i, timeout: 5).tcp
e = {host: "db-1", service: "web", state: "ok", metric: 1.5, ttl: 60, tags: ["load"]}
c << e
n, began = 0, Process.clock_gettime(Process::CLOCK_MONOTONIC)
while (took = Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) < ARGV[2].to_f
  c << e
  n += 1
end
puts n, took`

// riemannGem is Ruby's client, one event after the other.
func (u *Suite) riemannGem(addr string, lasts time.Duration) contestant {
	return contestant{riemannRuby, func(ctx context.Context) (sample, error) {
		exe, err := exec.LookPath("ruby")
		if err != nil {
			return nil, fmt.Errorf("ruby is missing; install it: apt-get install ruby-riemann-client: %w", err)
		}
		script := filepath.Join(u.dir, "loop.rb")
		if err := os.WriteFile(script, []byte(gemLoop), 0o600); err != nil {
			return nil, fmt.Errorf("make a script for a peer: %w", err)
		}
		host, port, _ := strings.Cut(addr, ":")
		args := []string{script, host, port, strconv.FormatFloat(lasts.Seconds(), 'f', 1, 64)}
		u.note("riemann, single events, ruby-riemann-client", exe, args...)
		e, err := runSuccessfully(ctx, exe, args...)
		if err != nil {
			return nil, err
		}
		n, took, err := readGem(string(e.out))
		if err != nil {
			return nil, err
		}
		return sample{eventsPerS: n / took}.cpu(e, uint64(n)), nil
	}}
}

// readGem parses the output of gemLoop.
func readGem(out string) (n, seconds float64, err error) {
	if _, err := fmt.Sscan(out, &n, &seconds); err != nil || n <= 0 || seconds <= 0 {
		return 0, 0, fmt.Errorf("the loop over ruby-riemann-client printed no count and no time: %s", lastLines(out))
	}
	return n, seconds, nil
}
