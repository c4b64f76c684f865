package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A Suite measures groups of contestants and collects the table's lines. It is for
// one goroutine.
type Suite struct {
	Settings
	program string // the binary under test
	dir     string // for the peers' files
	log     io.Writer
	began   time.Time
	load    machineLoad

	lines    []line
	commands []string // the first command of each contestant
}

// NewSuite builds the program as for a release, and makes a folder for files, which is
// removed with the test.
func NewSuite(b testing.TB, s Settings) *Suite {
	b.Helper()
	u := &Suite{Settings: s, dir: b.TempDir(), log: os.Stderr, began: time.Now(), load: readMachineLoad()}
	u.program = filepath.Join(u.dir, "carronade")
	b.Setenv("XDG_DATA_HOME", u.dir) // store reports as usual, but not among the user's
	if named := os.Getenv("CARRONADE_PROGRAM"); named != "" {
		u.program = named
		return u
	}
	build := exec.CommandContext(b.Context(), "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", u.program, "carronade")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("bench: build the program: %v\n%s", err, out)
	}
	return u
}

// A contestant is one client that runs once in each round.
type contestant struct {
	name string
	run  func(context.Context) (sample, error)
}

// carronade is the name of the program in every group.
const carronade = "carronade"

// results are the numbers of each contestant's runs, and the errors of those that
// failed.
type results struct {
	work    string
	samples map[string][]sample
	faults  map[string]error
}

// alternate runs the contestants alternating: A B C, A B C, ... so that other load of
// the machine affects all of them. A contestant that fails is left out of the
// following rounds.
func (u *Suite) alternate(ctx context.Context, work string, cs ...contestant) *results {
	r := &results{work: work, samples: map[string][]sample{}, faults: map[string]error{}}
	for round := range u.Runs {
		for _, c := range cs {
			if r.faults[c.name] != nil || ctx.Err() != nil {
				continue
			}
			s, err := c.run(ctx)
			if err != nil {
				r.faults[c.name] = err
				fmt.Fprintf(u.log, "bench: %s: %s: %v\n", work, c.name, err)
				continue
			}
			r.samples[c.name] = append(r.samples[c.name], s)
			fmt.Fprintf(u.log, "bench: %4.0fs %s, round %d of %d: %s: %s\n", time.Since(u.began).Seconds(), work, round+1, u.Runs, c.name, s)
		}
	}
	return r
}

// String shows a sample's numbers in a fixed order.
func (s sample) String() string {
	var parts []string
	for m, v := range s {
		parts = append(parts, string(m)+" "+m.show(v))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// of collects a metric of a contestant.
func (r *results) of(name string, m metric) spread {
	var v []float64
	for _, s := range r.samples[name] {
		if x, ok := s[m]; ok {
			v = append(v, x)
		}
	}
	return spreadOf(v)
}

// fault is why one of the named contestants has no numbers.
func (r *results) fault(names ...string) string {
	for _, n := range names {
		if err := r.faults[n]; err != nil {
			return n + ": " + lastLines(err.Error())
		}
	}
	return ""
}

// addLine adds a line of the program without a peer.
func (u *Suite) addLine(r *results, m metric, must, aim bound) *line {
	u.lines = append(u.lines, line{Work: r.work, Metric: m, Carronade: r.of(carronade, m), Must: must, Aim: aim, Fault: r.fault(carronade)})
	return &u.lines[len(u.lines)-1]
}

// addComparison adds a line that compares one contestant with another.
func (u *Suite) addComparison(r *results, name, peer string, m metric, must, aim bound) *line {
	return u.addComparisonOf(r, name, m, peer, m, must, aim)
}

// addComparisonOf is addComparison with another metric for the peer.
func (u *Suite) addComparisonOf(r *results, name string, m metric, peer string, theirs metric, must, aim bound) *line {
	work := r.work
	if name != carronade {
		work += ", " + name
	}
	shown := peer
	if theirs != m {
		shown += ", " + string(theirs)
	}
	u.lines = append(u.lines, line{
		Work: work, Metric: m, Carronade: r.of(name, m), Peer: shown, Theirs: r.of(peer, theirs),
		Must: must, Aim: aim, Fault: r.fault(name, peer),
	})
	return &u.lines[len(u.lines)-1]
}

// best names the contestant among those given with the highest median.
func (r *results) best(m metric, names ...string) string {
	return slices.MaxFunc(names, func(a, b string) int {
		x, y := r.of(a, m), r.of(b, m)
		switch {
		case x.N == 0 || y.N > 0 && x.Median < y.Median:
			return -1
		case y.N == 0 || x.Median > y.Median:
			return 1
		}
		return 0
	})
}

// note keeps the command line of a contestant's first run, for the log.
func (u *Suite) note(what string, name string, args ...string) {
	words := []string{filepath.Base(name)}
	for _, a := range args {
		a = strings.ReplaceAll(a, u.dir, "$DIR")
		if strings.ContainsAny(a, " *'") {
			a = "'" + a + "'"
		}
		words = append(words, a)
	}
	prefix := what + ": "
	for _, c := range u.commands {
		if strings.HasPrefix(c, prefix) {
			return
		}
	}
	u.commands = append(u.commands, prefix+strings.Join(words, " "))
}

// write makes a file for a peer: n lines of size bytes each, without the end of line,
// repeating ten thousand different ones.
func (u *Suite) write(name string, n, size int) (string, error) {
	path := filepath.Join(u.dir, name)
	if _, err := os.Stat(path); err == nil {
		return path, nil
	}
	const distinct = 10_000
	text := payloadLines(distinct, size)
	f, err := os.Create(path)
	if err != nil {
		return "", fmt.Errorf("make a file for a peer: %w", err)
	}
	for left := n * (size + 1); left > 0 && err == nil; left -= len(text) {
		_, err = f.Write(text[:min(left, len(text))])
	}
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		return "", fmt.Errorf("write %s: %w", path, err)
	}
	return path, nil
}
