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
	"sync/atomic"
	"time"

	"carronade/internal/host"
	"carronade/internal/verdict/fault"
	"carronade/protocol"
	"carronade/units"
)

// leaderTimeout bounds the question which server leads a partition.
const leaderTimeout = 5 * time.Second

// An injector makes the faults that the workload asks for, and runs its commands, each at its time.
// A nil injector does nothing.
type injector struct {
	e        *execution
	mark     *Marker
	faults   []fault.Fault
	moments  []fault.Moment
	commands []string

	cancel  context.CancelFunc
	unwatch func() bool // of the interrupt
	done    sync.WaitGroup

	paused   map[*fault.Fault]bool // stops that the engine of a container makes, decided before the run
	named    map[int]host.Identity // the processes that faults name, as they were before the run
	restarts sync.Mutex            // locked while the system is restarted

	ended     atomic.Bool  // a fault has ended processes
	repairs   atomic.Int32 // what may bring connections back, and is not over: faults that are undone, and commands
	repairing atomic.Int32 // those of them that have begun

	mu       sync.Mutex
	problems []string
	unmade   int // faults that were not made yet
	unrun    int // commands that were not run yet

	standing sync.Mutex      // of what follows
	stopped  map[int]bool    // processes that stand still
	pauses   map[*pause]bool // those that have not ended
	over     bool            // the program exits: nothing is stopped any more
}

// newInjector returns nil if the workload makes no faults.
func (e *execution) newInjector(marks *marking) *injector {
	w := e.Workload
	if !w.Has("fault") && !w.Has("exec") {
		return nil
	}
	marks.reserve(2*len(w.Faults()) + len(w.Moments())) // a fault and its heal, if it has one
	return &injector{
		e: e, mark: &marks.Marker, faults: w.Faults(), moments: w.Moments(), commands: w.List("exec"),
		paused: map[*fault.Fault]bool{}, named: map[int]host.Identity{}, stopped: map[int]bool{}, pauses: map[*pause]bool{},
	}
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
			return &protocol.Error{Doing: "prepare --fault " + f.String(), Err: err, Hint: hint}
		}
		if f.Action == fault.Restart {
			err := errors.New("the run has not started a system")
			if u := j.e.system; u != nil {
				err = u.CanRestart()
			}
			if err != nil {
				return refuse(err, "start it with --system-cmd")
			}
			continue
		}
		pids, err := j.processes(ctx, f)
		for _, pid := range pids {
			if err = host.MaySignal(pid); err != nil {
				break
			}
		}
		if err != nil && f.Action == fault.Stop && f.What == fault.System && j.e.system != nil && j.e.system.InContainer() {
			j.paused[f] = true // by its engine
			continue
		}
		if err != nil {
			return refuse(err, signalHint(f.Action, err))
		}
		if id, ok := host.Identify(f.Number); ok && f.What == fault.PID {
			j.named[f.Number] = id
		}
	}
	return nil
}

// signalHint is what to do if a fault cannot signal a process.
func signalHint(action string, err error) string {
	switch {
	case errors.Is(err, host.ErrNotPermitted):
		return "run as the user whose process it is, or as an administrator"
	case errors.Is(err, host.ErrNoProcess):
		return "give the number that ps shows, of a process that runs until then"
	}
	return "name the process: " + action + "=pid:N"
}

// processes finds the processes that a fault is done to.
func (j *injector) processes(ctx context.Context, f *fault.Fault) ([]int, error) {
	switch f.What {
	case fault.PID:
		id, ok := j.named[f.Number]
		if alive, known := id.Alive(); ok && known && !alive { // its number may be another's by now
			return nil, fmt.Errorf("process %d has ended", f.Number)
		}
		return []int{f.Number}, nil
	case fault.System:
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
	leader := j.e.can().Leader
	if leader == nil {
		return nil, fmt.Errorf("a %s target has no leaders", j.e.Workload.Kind.Name())
	}
	ctx, cancel := context.WithTimeout(ctx, leaderTimeout)
	defer cancel()
	addr, err := leader(ctx, f.Number)
	if err != nil {
		return nil, err
	}
	name, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	ips := here(name)
	if len(ips) == 0 {
		return nil, fmt.Errorf("the leader %s is not on this machine", addr)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		return nil, err
	}
	pid, err := host.ListenerOf(ips, n)
	if err != nil {
		return nil, err
	}
	j.e.Logf("the leader is at %s: process %d", addr, pid)
	return []int{pid}, nil
}

// here returns the addresses of a host that are of this machine.
func here(host string) []net.IP {
	ips, err := net.LookupIP(host)
	if err != nil {
		return nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(ips, func(ip net.IP) bool {
		return !ip.IsLoopback() && !slices.ContainsFunc(own, func(a net.Addr) bool {
			n, ok := a.(*net.IPNet)
			return ok && n.IP.Equal(ip)
		})
	})
}

// begin starts to wait for the moments. The times of the run count from began.
func (j *injector) begin(ctx context.Context, began time.Time) {
	if j == nil {
		return
	}
	// An interrupted run is still measured until it ends. But nothing may be left broken while it
	// waits for the last answers.
	interrupted := ctx
	ctx, j.cancel = context.WithCancel(context.WithoutCancel(ctx))
	faulty, heal := context.WithCancel(ctx)
	j.unwatch = context.AfterFunc(interrupted, heal)
	j.e.endings.undo(j.release)
	j.unmade, j.unrun = len(j.faults), len(j.commands)
	at := func(ctx context.Context, t time.Duration, left *int, do func()) {
		j.done.Go(func() {
			select {
			case <-time.After(time.Until(began.Add(t))):
			case <-ctx.Done():
				return
			}
			j.mu.Lock()
			*left--
			j.mu.Unlock()
			do()
		})
	}
	for i := range j.faults {
		f := &j.faults[i]
		do := func() { j.make(ctx, faulty, f) }
		if f.Action != fault.Kill {
			do = j.repair(do)
		}
		at(faulty, f.At, &j.unmade, do)
	}
	for i := range j.commands {
		at(ctx, j.moments[i].At, &j.unrun, j.repair(func() { j.exec(ctx, j.moments[i].Kind, j.commands[i]) }))
	}
}

// repair counts what may bring connections back, until it is over. The run waits for a connection also if
// it is still to come; only if it has begun it explains that nothing arrives.
func (j *injector) repair(do func()) func() {
	j.repairs.Add(1)
	return func() {
		j.repairing.Add(1)
		do()
		j.repairing.Add(-1)
		j.repairs.Add(-1)
	}
}

// end waits for what was begun to be undone, and returns what could not be done.
func (j *injector) end() []string {
	if j == nil {
		return nil
	}
	j.unwatch()
	j.cancel()
	j.done.Wait()
	j.endPauses()
	j.e.endings.undo(nil)
	if n := j.unmade; n > 0 {
		j.problem("%s not made: the run ended before", units.Plural(n, "fault"))
	}
	if n := j.unrun; n > 0 {
		j.problem("%s of --exec not run: the run ended before", units.Plural(n, "command"))
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
	name = strings.Join(strings.Fields(name), " ") // a command may have several lines
	if len(name) > mostName {
		name = strings.ToValidUTF8(name[:mostName], "")
	}
	if err := j.mark.own(kind, name, by, from, to); err != nil && !errors.Is(err, ErrEnded) {
		j.problem("mark %s: %v", name, err)
	}
}

// mostName is the length at which the name of a mark is cut, in bytes.
const mostName = 100

// lastOutput is how long the output of a command is waited for that has ended: a process that it
// left behind may keep it open.
const lastOutput = time.Second

// exec runs a command. The mark is at the middle of its run.
func (j *injector) exec(ctx context.Context, kind, line string) {
	mask := maskOf(j.e.Workload)
	mask.Add(j.e.Secrets...)
	words := host.Shell(line)
	name := mask.Args(words)[len(words)-1]      // its secrets are hidden in what it prints, too
	cmd := exec.Command(words[0], words[1:]...) //nolint:gosec,noctx // what the user asked to run, and allowed; killed below
	cmd.Env = host.Environ()
	last := ""
	from := time.Now()
	var printing sync.Mutex
	child, err := host.StartChild(cmd, func(text string) {
		printing.Lock()
		defer printing.Unlock()
		if text = strings.TrimSpace(text); text != "" {
			last = text
		}
	})
	killed := false
	if err == nil {
		select {
		case <-child.Done():
		case <-ctx.Done():
			killed = child.State() == nil // both may have ended
			child.Kill()
			<-child.Done()
		}
		err = child.Err()
	}
	to := time.Now()
	switch {
	case err == nil:
	case killed:
		j.problem("--exec %s: it was still running when the run ended", name)
	default:
		if child != nil {
			select {
			case <-child.Drained():
			case <-time.After(lastOutput):
			}
		}
		printing.Lock()
		text := mask.Text(mask.WithoutCut(last, host.MaxLine))
		printing.Unlock()
		if text != "" {
			text = ": " + text
		}
		j.problem("--exec %s: %v%s", name, err, text)
	}
	j.noted(kind, name, "exec", from, to)
}
