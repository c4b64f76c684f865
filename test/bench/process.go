package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/test/testkit"
)

// A processResult is the result of a process.
type processResult struct {
	out    []byte
	stderr string
	code   int
	cpu    time.Duration // user and system, in total
	wall   time.Duration
	rss    []uint64 // samples of the resident size in bytes, if it was watched
	peak   uint64   // maximum resident size at the last sample, in bytes
}

// processTimeout bounds each process: the longest should take a minute.
const processTimeout = 5 * time.Minute

// runProcess runs a command to its end. With watch, it samples the resident size each
// second, from the first second on.
func runProcess(ctx context.Context, watch bool, name string, args ...string) (*processResult, error) {
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	every := time.Duration(0)
	if watch {
		every = time.Second
	}
	return runWatched(ctx, every, name, args...)
}

// runWatched runs a command to its end, and samples its resident size at an interval;
// 0 means never.
func runWatched(ctx context.Context, every time.Duration, name string, args ...string) (*processResult, error) {
	var rss []uint64
	var peak uint64
	e, err := runAlong(ctx, name, args, func(p *os.Process, ended <-chan struct{}) {
		if every == 0 {
			return
		}
		tick := time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-ended:
				return
			case <-tick.C:
				now, most := residentSize(p.Pid)
				rss, peak = append(rss, now), max(peak, most)
			}
		}
	})
	if e != nil {
		e.rss, e.peak = rss, peak
	}
	if err == nil && ctx.Err() != nil {
		err = fmt.Errorf("run %s: %w after %v: %s", name, ctx.Err(), e.wall.Round(time.Second), e.stderr)
	}
	return e, err
}

// runFor runs a command for lasts, and then ends it as Ctrl-C does; 0 means to its
// end.
func runFor(ctx context.Context, lasts time.Duration, name string, args ...string) (*processResult, error) {
	if lasts == 0 {
		return runProcess(ctx, false, name, args...)
	}
	ctx, cancel := context.WithTimeout(ctx, processTimeout)
	defer cancel()
	return runAlong(ctx, name, args, func(p *os.Process, ended <-chan struct{}) {
		select {
		case <-ended:
		case <-time.After(lasts):
			_ = p.Signal(os.Interrupt)
		}
	})
}

// runAlong runs a command to its end, and calls watch while it runs.
func runAlong(ctx context.Context, name string, args []string, watch func(p *os.Process, ended <-chan struct{})) (*processResult, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	began := time.Now()
	if err := testkit.Launch(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() { watch(cmd.Process, ended) })
	err := cmd.Wait()
	e := &processResult{out: out.Bytes(), stderr: strings.TrimSpace(errs.String()), code: cmd.ProcessState.ExitCode(), wall: time.Since(began)}
	close(ended)
	other.Wait()
	e.cpu = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return e, fmt.Errorf("run %s: %w", name, err)
	}
	return e, nil
}

// runSuccessfully is runProcess for a command that must succeed.
func runSuccessfully(ctx context.Context, name string, args ...string) (*processResult, error) {
	e, err := runProcess(ctx, false, name, args...)
	if err == nil && e.code != 0 {
		err = fmt.Errorf("%s ended with exit code %d: %s%s", name, e.code, e.out, e.stderr)
	}
	return e, err
}

// residentSize is VmRSS and VmHWM of a process in bytes, from proc(5); 0 elsewhere.
// getrusage(2) cannot be used: its value for an ended child is never less than the
// size of this process when it started the child.
func residentSize(pid int) (now, peak uint64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0
	}
	return statusBytes(text, "VmRSS:"), statusBytes(text, "VmHWM:")
}

// cpuOf is the CPU time that a process has used so far, from proc(5): Linux only.
func cpuOf(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:])) // from the third on
	ticks := 0
	for _, f := range fields[11:13] { // user and system time, in hundredths of a second
		n, _ := strconv.Atoi(f)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond, nil
}

// statusBytes reads a size from /proc/PID/status.
func statusBytes(text []byte, name string) uint64 {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			return kib << 10
		}
	}
	return 0
}

// A server is a child that listens until it is stopped.
type server struct {
	addr   string
	second string // another address of it, such as Riemann's for WebSockets
	stop   func()
}

// serve starts a command and waits for its "listening on ADDR".
func serve(ctx context.Context, name string, args ...string) (*server, error) {
	cmd := exec.Command(name, args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := testkit.Launch(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s := &server{}
	s.stop = sync.OnceFunc(func() {
		_ = cmd.Process.Kill() // it keeps nothing
		_ = cmd.Wait()
	})
	ready := make(chan string, 1)
	go func() {
		defer close(ready)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if addr, ok := strings.CutPrefix(lines.Text(), "listening on "); ok {
				ready <- addr
				return
			}
		}
	}()
	select {
	case addr, ok := <-ready:
		if !ok {
			s.stop()
			return nil, fmt.Errorf("%s %s ended before it listened: %s", name, strings.Join(args, " "), errs.String())
		}
		s.addr, addr, _ = strings.Cut(addr, ", ")
		_, s.second, _ = strings.Cut(addr, " ")
		return s, nil
	case <-ctx.Done():
		s.stop()
		return nil, fmt.Errorf("wait for %s to listen: %w", name, ctx.Err())
	}
}
