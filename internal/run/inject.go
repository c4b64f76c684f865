package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"carronade/internal/inject"
	"carronade/internal/outage"
	"carronade/internal/system"
	"carronade/target"
	"carronade/units"
)

// leaderTimeout bounds the question which server leads a partition.
const leaderTimeout = 5 * time.Second

// An injector makes the faults that the workload asks for, and runs its commands, each at its time.
// A nil injector does nothing.
type injector struct {
	e        *execution
	mark     *Marker
	faults   []inject.Fault
	moments  []inject.Moment
	commands []string

	cancel context.CancelFunc
	done   sync.WaitGroup

	mu       sync.Mutex
	problems []string
	waiting  int // not made yet
}

// newInjector returns nil if the workload makes no faults.
func (e *execution) newInjector(marks *marking) *injector {
	w := e.Workload
	if !w.Has("fault") && !w.Has("exec") {
		return nil
	}
	return &injector{e: e, mark: &marks.Marker, faults: w.Faults(), moments: w.Moments(), commands: w.List("exec")}
}

// check finds out before the run whether its faults can be made: the processes are there, and may
// be signalled.
func (j *injector) check(ctx context.Context) error {
	if j == nil {
		return nil
	}
	for i := range j.faults {
		f := &j.faults[i]
		refuse := func(err error, hint string) error {
			return &target.Error{Doing: "prepare --fault " + f.String(), Err: err, Hint: hint}
		}
		if f.Action == inject.Restart {
			err := errors.New("there is no system that the run started")
			if u := j.e.system; u != nil {
				err = u.CanRestart()
			}
			if err != nil {
				return refuse(err, "start it with --system-cmd")
			}
			continue
		}
		pids, err := j.processes(ctx, f)
		if err != nil {
			return refuse(err, "name the process: "+f.Action+"=pid:N")
		}
		for _, pid := range pids {
			if err := system.MaySignal(pid); err != nil {
				return refuse(err, "run as the user whose process it is, or as an administrator")
			}
		}
	}
	return nil
}

// processes finds the processes that a fault is done to.
func (j *injector) processes(ctx context.Context, f *inject.Fault) ([]int, error) {
	switch f.What {
	case inject.PID:
		return []int{f.Number}, nil
	case inject.System:
		u := j.e.system
		if u == nil {
			return nil, errors.New("the run has no system: --system-cmd starts one, and --system-pid names one")
		}
		pids := u.Members()
		if len(pids) == 0 {
			return nil, errors.New("the processes of the system are not known")
		}
		return pids, nil
	}
	leading, ok := j.e.session.(target.Leading)
	if !ok {
		return nil, fmt.Errorf("a %s target has no leaders", j.e.Workload.Kind.Name())
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	addr, err := leading.Leader(ctx, f.Number)
	if err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if !isHere(host) {
		return nil, fmt.Errorf("the leader %s is not on this machine", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	pid, err := system.ListenerOf(n)
	if err != nil {
		return nil, err
	}
	j.e.Logf("the leader is at %s: process %d", addr, pid)
	return []int{pid}, nil
}

// isHere reports whether a host is this machine.
func isHere(host string) bool {
	ips, err := net.LookupIP(host)
	if err != nil {
		return false
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return false
	}
	for _, ip := range ips {
		if ip.IsLoopback() || slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		}) {
			return true
		}
	}
	return false
}

// begin starts to wait for the moments. The times of the run count from began.
func (j *injector) begin(ctx context.Context, began time.Time) {
	if j == nil {
		return
	}
	ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx)) // an interrupted run is still measured until it ends
	j.waiting = len(j.faults) + len(j.commands)
	at := func(t time.Duration, do func()) {
		j.done.Go(func() {
			select {
			case <-time.After(time.Until(began.Add(t))):
			case <-ctx.Done():
				return
			}
			j.mu.Lock()
			j.waiting--
			j.mu.Unlock()
			do()
		})
	}
	for i := range j.faults {
		f := &j.faults[i]
		at(f.At, func() { j.make(ctx, f) })
	}
	for i := range j.commands {
		at(j.moments[i].At, func() { j.exec(ctx, j.moments[i].Kind, j.commands[i]) })
	}
}

// end waits for what was begun to be undone, and returns what could not be done.
func (j *injector) end() []string {
	if j == nil {
		return nil
	}
	j.cancel()
	j.done.Wait()
	if j.waiting > 0 {
		j.problem("%s not made: the run ended before", units.Plural(j.waiting, "fault"))
	}
	return j.problems
}

func (j *injector) problem(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.problems = append(j.problems, fmt.Sprintf(format, args...))
}

// noted marks the run. If it has ended, there is nothing to mark.
func (j *injector) noted(kind, name, by string, from, to time.Time) {
	if len(name) > mostName {
		name = name[:mostName]
	}
	if _, err := j.mark.Mark(kind, name, by, from, to); err != nil && !errors.Is(err, ErrEnded) {
		j.problem("mark %s: %v", name, err)
	}
}

// mostName is the length at which the name of a mark is cut, in bytes.
const mostName = 100

// make makes a fault, and undoes it if that belongs to it.
func (j *injector) make(ctx context.Context, f *inject.Fault) {
	const by = "fault"
	if f.Action == inject.Restart {
		from := time.Now()
		err := j.e.system.Restart(ctx, f.Length, func() { j.noted(outage.Fault, f.String(), by, from, time.Now()) })
		if err == nil {
			now := time.Now()
			j.noted(outage.Heal, f.String(), by, now, now)
		} else if ctx.Err() == nil {
			j.problem("--fault %s: %v", f, err)
		}
		return
	}
	pids, err := j.processes(ctx, f)
	if err != nil {
		j.problem("--fault %s: %v", f, err)
		return
	}
	signal := system.End
	if f.Action == inject.Stop {
		signal = system.Pause
	}
	from := time.Now()
	reached := j.each(f, pids, signal)
	if len(reached) == 0 {
		return
	}
	j.noted(outage.Fault, f.String(), by, from, time.Now())
	if f.Action != inject.Stop {
		return
	}
	select {
	case <-time.After(time.Until(from.Add(f.Length))):
	case <-ctx.Done(): // the run has ended: nothing may be left standing
	}
	from = time.Now()
	j.each(f, reached, system.Continue)
	j.noted(outage.Heal, f.String(), by, from, time.Now())
}

// each signals processes, and returns those that it reached.
func (j *injector) each(f *inject.Fault, pids []int, signal func(int) error) (reached []int) {
	for _, pid := range pids {
		if err := signal(pid); err != nil {
			j.problem("--fault %s: %v", f, err)
			continue
		}
		reached = append(reached, pid)
	}
	return reached
}

// exec runs a command. The mark is at the middle of its run.
func (j *injector) exec(ctx context.Context, kind, line string) {
	words := system.Shell(line)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...) //nolint:gosec // what the user asked to run, and allowed
	cmd.Env = system.Environ()
	cmd.WaitDelay = time.Second // a process that it left behind may keep its output open
	from := time.Now()
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil
	}
	mask := maskOf(j.e.Workload)
	name := mask.Text(line)
	if ctx.Err() != nil && err != nil {
		j.problem("--exec %s: it was still running when the run ended", name)
	} else if err != nil {
		j.problem("--exec %s: %v%s", name, err, lastLine(mask.Text(string(out))))
	}
	j.noted(kind, name, "exec", from, time.Now())
}

// lastLine is the end of an output, for an error.
func lastLine(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	return ": " + text[strings.LastIndexByte(text, '\n')+1:]
}
