package heyapm

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"carronade/internal/host"
)

// A heyRound is one of the fixed workloads of -bench.
type heyRound struct {
	name    string
	streams []heyStream
}

// heyRounds are the rounds of the tool's benchmark, the warm-up first.
func heyRounds() []heyRound {
	tx := func(per time.Duration, spans int) heyStream {
		return heyStream{name: "transactions", limit: math.MaxInt, interval: per, spans: [2]int{spans, spans}, limitFlag: "-t"}
	}
	errs := func(frames int) heyStream {
		return heyStream{name: "errors", limit: math.MaxInt, interval: time.Millisecond, frames: [2]int{frames, frames}, limitFlag: "-e"}
	}
	const slow, fast = 5 * time.Millisecond, 100 * time.Microsecond
	return []heyRound{
		{"warm up", []heyStream{errs(0)}},
		{"transactions only", []heyStream{tx(slow, 0)}},
		{"small transactions", []heyStream{tx(slow, 10)}},
		{"large transactions", []heyStream{tx(slow, 40)}},
		{"small errors only", []heyStream{errs(10)}},
		{"very large errors only", []heyStream{errs(500)}},
		{"transactions only very high load", []heyStream{tx(fast, 0)}},
		{"transactions, spans and errors high load", []heyStream{tx(slow, 10), errs(50)}},
	}
}

// benchmark runs all rounds in order. It ends at an interrupt.
func (t *heyAgents) benchmark(ctx context.Context) (int, error) {
	worstCode := 0
	for i, r := range heyRounds() {
		length := cmp.Or(t.run, heyRunTime2023)
		if i == 0 {
			length = t.pause
		}
		t.log.printf("running benchmark %q", r.name)
		_, code, err := t.runStreams(ctx, r.streams, length, strings.ReplaceAll(r.name, ",", ""))
		if err != nil {
			return code, err
		}
		worstCode = host.WorseExit(worstCode, code)
		if ctx.Err() != nil {
			return t.interrupted(), nil //nolint:nilerr // an interrupt is not an error
		}
		if i == 0 || i == len(heyRounds())-1 {
			continue
		}
		t.log.printf("waiting %v for the server to settle", t.pause)
		timer := time.NewTimer(t.pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return t.interrupted(), nil
		}
	}
	fmt.Fprintln(t.p.Err, "to check the results: carronade verify -h; the reports have the labels as=hey-apm and bench=NAME")
	return worstCode, nil
}

// interrupted reports that the benchmark is incomplete and returns the exit code.
func (t *heyAgents) interrupted() int {
	fmt.Fprintln(t.p.Err, "interrupted: the benchmark is incomplete")
	return heyExit(t.p, host.ExitInterrupted)
}
