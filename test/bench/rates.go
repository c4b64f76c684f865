package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	hey = "hey"
	// heyModule is the module that the Go toolchain installs.
	heyModule = "github.com/rakyll/hey@v0.1.4"
	// barePacer is a thread that wakes at the rate and does nothing. Its cost is that
	// of the wake-ups on this machine, a lower bound for every generator.
	barePacer = "bare timer loop"
)

// A rateRow is one open loop of single events, or of APM requests, at an ordinary
// rate.
//
// The bound of the CPU counts from the cost of the wake-ups alone, which differs by a
// factor of ten between a virtual machine and real hardware. The aim counts from 0.
type rateRow struct {
	perS  int
	times float64 // bound of the CPU, in multiples of the bare timer loop's
	share float64 // aim of the CPU, of one core; 0: half of hey's
	delay float64 // bound of the send delay's p99, in us
}

// ordinaryRates measures the CPU and the send delay at rates far below the maximum.
func (u *Suite) ordinaryRates(b testing.TB) {
	null := []rateRow{{10, 1.5, 0.003, 1000}, {1000, 1.6, 0.025, 150}, {5000, 1.3, 0.08, 150}}
	u.measureRates(b, "null://", null, "null://", "--batch-events", "1")
	riemann := u.startDiscardingRiemann(b)
	u.measureRates(b, "riemann, one connection", []rateRow{{10, 1.5, 0.003, 1000}, {1000, 2, 0.04, 200}, {5000, 1.6, 0.1, 300}, {20_000, 0.7, 0.2, 500}},
		"riemann://"+riemann.addr, "--batch-events", "1")
	kafka := u.startDiscardingKafka(b)
	u.measureRates(b, "kafka", []rateRow{{10, 1.5, 0.003, 1000}, {1000, 2.2, 0.05, 200}, {5000, 1.8, 0.15, 300}}, "kafka://"+kafka.addr+"/"+topic, "--size", "100", "--batch-events", "1")
	apm := u.startDiscardingAPM(b)
	u.measureRates(b, "apm, one body repeated, 8 connections", []rateRow{{10, 1.5, 0.003, 1000}, {1000, 2, 0, 200}, {5000, 1.6, 0, 300}, {20_000, 0.75, 0.6, 500}},
		"apm+http://"+apm.addr, append(tenTransactions, repeated)...)
}

// measureRates measures one target at each of its rates.
func (u *Suite) measureRates(b testing.TB, name string, all []rateRow, url string, args ...string) {
	lasts := u.scaled(5 * time.Second)
	base, apm := strings.CutPrefix(url, "apm+")
	for _, p := range all {
		events := p.perS
		if apm {
			events *= 10 // per request
		}
		work := fmt.Sprintf("%s, %s/s", name, si(float64(p.perS)))
		given := append([]string{url, "--rate", strconv.Itoa(events) + "/s", "--for", lasts.String()}, args...)
		cs := []contestant{
			{carronade, func(ctx context.Context) (sample, error) {
				d, _, err := u.runProgram(ctx, work+", carronade", given...)
				if err != nil {
					return nil, err
				}
				if d.SendDelay == nil {
					return nil, errors.New("the report has no send delay")
				}
				return sample{cpuShare: d.Generator.CPUS / d.Totals.ElapsedS, sendDelayP99: d.SendDelay.P99}, nil
			}},
			{barePacer, func(ctx context.Context) (sample, error) {
				r, e, err := u.loop(ctx, "pacer", "-rate", strconv.Itoa(p.perS), "-for", lasts.String())
				if err != nil {
					return nil, err
				}
				return sample{cpuShare: e.cpu.Seconds() / r.seconds()}, nil
			}},
		}
		if p.share == 0 {
			cs = append(cs, u.heyAt(b, base, p.perS, lasts))
		}
		r := u.alternate(b.Context(), work, cs...)
		if p.share == 0 {
			u.addComparison(r, carronade, hey, cpuShare, atMost(0.75), atMost(0.5))
		} else {
			u.addLine(r, cpuShare, bound{}, atMost(p.share))
		}
		u.addLine(r, sendDelayP99, atMost(p.delay), bound{})
		u.addComparison(r, carronade, barePacer, cpuShare, atMost(p.times), bound{})
	}
}

// heyAt is hey at a rate, with a body of ten transactions.
func (u *Suite) heyAt(b testing.TB, url string, perS int, lasts time.Duration) contestant {
	exe, err := u.heyProgram(b.Context())
	body := u.bodyOf(b, tenTransactions...)
	return contestant{hey, func(ctx context.Context) (sample, error) {
		if err != nil {
			return nil, err
		}
		clients, _ := strconv.Atoi(apmClients)
		args := []string{
			"-z", lasts.String(), "-c", apmClients, "-q", strconv.Itoa(perS / clients), "-m", "POST",
			"-T", "application/x-ndjson", "-D", body, url + intakePath,
		}
		u.note(fmt.Sprintf("apm, %d/s, hey", perS), exe, args...)
		e, err := runSuccessfully(ctx, exe, args...)
		if err != nil {
			return nil, err
		}
		return sample{cpuShare: e.cpu.Seconds() / e.wall.Seconds()}, nil
	}}
}

// heyProgram builds hey, unless it is installed.
func (u *Suite) heyProgram(ctx context.Context) (string, error) {
	if exe, err := exec.LookPath(hey); err == nil {
		return exe, nil
	}
	exe := filepath.Join(u.dir, hey)
	if _, err := os.Stat(exe); err == nil {
		return exe, nil
	}
	cmd := exec.CommandContext(ctx, "go", "install", heyModule)
	cmd.Env = append(os.Environ(), "GOBIN="+u.dir, "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w: %s", heyModule, err, lastLines(string(out)))
	}
	return exe, nil
}
