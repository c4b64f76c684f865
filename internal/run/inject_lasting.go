package run

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"carronade/internal/fault"
	"carronade/internal/system"
	"carronade/target"
	"carronade/units"
)

// An undoing is how a fault is undone.
type undoing struct {
	fault  string
	undo   func() error  // after an error it may be called again
	byHand func() string // the command that does the same; nil: there is none
	err    error         // of the first attempt that failed
	marked bool          // the run has the mark of the fault
}

// left says that a fault was not undone, and what the user can do.
func (u *undoing) left(err error) string {
	text := fmt.Sprintf("--fault %s was not undone: %v", u.fault, err)
	if u.byHand != nil {
		if line := u.byHand(); line != "" {
			text += "; by hand: " + line
		}
	}
	return text
}

// How often an undoing is tried before the end of the run, and how long after another.
const (
	undoTries = 3
	undoAgain = time.Second
)

var errLeaving = errors.New("this program ends")

// checkLasting finds out whether a fault of the network or of a disk can be made, with a hint if not.
func (j *injector) checkLasting(f *fault.Fault) (hint string, err error) {
	switch f.Action {
	case fault.NetDelay:
		if j.e.relay.Connections() == 0 {
			return "leave it out, or choose a target over TCP", errors.New("the target has no connections of TCP, and others cannot be delayed")
		}
	case fault.NetLoss:
		all, err := j.filters()
		for _, p := range all {
			_ = p.Close()
		}
		if err != nil {
			return "packets are dropped in a network of the system's own: run it in a container (--system-image), or with ip netns exec in --system-cmd, and run this program as root", err
		}
	case fault.DiskFull:
		if j.e.system == nil || !j.e.system.started {
			return "start it with --system-cmd or --system-image", errors.New("the run has not started the system whose disk it would fill")
		}
		if err := system.CanFill(f.Folder, j.written()...); err != nil {
			return "mount a small filesystem for the data of the system, such as mount -t tmpfs -o size=256m tmpfs /mnt/data", err
		}
	}
	return "", nil
}

// written are the files that the run writes, and the place of its store.
func (j *injector) written() []string {
	all := append([]string{j.e.HDR, j.e.Trace, j.e.Workload.String("system-log")}, j.e.Files...)
	if j.e.Store != nil {
		all = append(all, j.e.Store.Place()) // an address is not on any filesystem here
	}
	return slices.DeleteFunc(all, func(path string) bool { return path == "" })
}

// filters are those for the networks of the system. A process that shares the network of this
// machine, such as one that started the others, does not count if others have one of their own.
func (j *injector) filters() (all []*system.PacketFilter, err error) {
	if j.e.system == nil {
		return nil, errors.New("the run has no system: --system-cmd or --system-image starts one")
	}
	pids := j.e.system.Members()
	if len(pids) == 0 {
		return nil, errors.New("the processes of the system are not known")
	}
	seen := map[string]bool{}
	var first error
	for _, pid := range pids {
		network, err := system.NetworkOf(pid)
		if err == nil && seen[network] {
			continue
		}
		seen[network] = true
		p, err := system.OpenPackets(pid)
		switch {
		case err == nil:
			all = append(all, p)
		case first == nil || errors.Is(first, system.ErrSharedNetwork):
			first = err
		}
	}
	if len(all) == 0 {
		return nil, first
	}
	return all, nil
}

// apply makes a fault of the network, or pauses a container, and returns how to undo it. With an error
// it may have happened all the same, wholly or in part; a nil undoing says that it did not.
func (j *injector) apply(ctx context.Context, f *fault.Fault) (*undoing, error) {
	u := &undoing{fault: f.String()}
	switch f.Action {
	case fault.NetDelay:
		ctx := context.Background() // it answers at once, or is gone
		u.undo = func() error {
			err := j.e.relay.Delay(ctx, 0)
			select {
			case <-j.e.relay.Died(): // and with it its connections
				return nil
			default:
				return err
			}
		}
		return u, j.e.relay.Delay(ctx, f.Delay)
	case fault.Stop:
		u.undo = func() error { return j.e.system.Unpause(context.Background()) } // it has a timeout
		u.byHand = j.e.system.UnpauseByHand
		return u, j.e.system.Pause(ctx)
	}
	all, err := j.filters()
	if err != nil {
		return nil, err
	}
	u.undo = func() error {
		var errs []error
		for _, p := range all {
			errs = append(errs, p.Close())
		}
		return errors.Join(errs...)
	}
	u.byHand = func() string {
		var lines []string
		for _, p := range all {
			if line := p.ByHand(); line != "" {
				lines = append(lines, line)
			}
		}
		return strings.Join(lines, " && ")
	}
	for _, p := range all {
		if err := p.Drop(f.Share); err != nil {
			return u, err
		}
	}
	return u, nil
}

// makeLasting makes a fault of the network, or pauses a container, and undoes it when its length is over,
// or at the end of faulty. ctx ends with the run.
func (j *injector) makeLasting(ctx, faulty context.Context, f *fault.Fault) {
	from := time.Now()
	u, err := j.startLasting(ctx, f)
	if err != nil {
		j.problem("--fault %s: %v", f, err)
		return
	}
	j.noted(fault.MarkFault, f.String(), byFault, from, time.Now())
	u.marked = true
	j.wait(faulty, from.Add(f.Length))
	for range undoTries {
		from = time.Now()
		if err = j.undo(u); err == nil {
			j.noted(fault.MarkHeal, f.String(), byFault, from, time.Now())
			return
		}
		j.e.Logf("--fault %s is not undone yet: %v", f, err)
		j.wait(ctx, from.Add(undoAgain))
	}
}

// undo undoes a fault. After an error it stays among those that are not undone: see release and
// undoRest.
func (j *injector) undo(u *undoing) error {
	j.standing.Lock()
	defer j.standing.Unlock()
	if !j.lasting[u] { // at an exit
		return nil
	}
	err := u.undo()
	if err == nil {
		delete(j.lasting, u)
	} else if u.err == nil {
		u.err = err
	}
	return err
}

// undoRest tries for the last time to undo what could not be undone, and says what became of it.
func (j *injector) undoRest() {
	j.standing.Lock()
	rest := slices.Collect(maps.Keys(j.lasting))
	j.standing.Unlock()
	for _, u := range rest {
		from := time.Now()
		if err := j.undo(u); err != nil {
			j.problem("%s", u.left(err))
			continue
		}
		j.problem("--fault %s was undone only when the run had ended: %v", u.fault, u.err)
		if !u.marked { // it was not made, or only in part
			continue
		}
		j.noted(fault.MarkHeal, u.fault, byFault, from, time.Now())
	}
}

// startLasting applies a fault, and remembers how to undo it: see release. A fault that failed is undone
// at once, as far as it was made.
func (j *injector) startLasting(ctx context.Context, f *fault.Fault) (*undoing, error) {
	j.standing.Lock()
	defer j.standing.Unlock()
	if j.over {
		return nil, errLeaving
	}
	u, err := j.apply(ctx, f)
	if err != nil {
		if u != nil {
			if u.err = u.undo(); u.err != nil {
				j.lasting[u] = true
			}
		}
		return nil, err
	}
	j.lasting[u] = true
	return u, nil
}

// wait waits for a moment, or the end of ctx.
func (j *injector) wait(ctx context.Context, until time.Time) {
	select {
	case <-time.After(time.Until(until)):
	case <-ctx.Done(): // nothing may be left broken
	}
}

// refill is how often what became free on a full filesystem is taken again: a system that deletes
// old data makes room.
const refill = 100 * time.Millisecond

// fill fills a filesystem, and keeps it full until its length is over, or the end of ctx. What it
// took has no name, so the kernel frees it if this program ends in another way.
func (j *injector) fill(ctx context.Context, f *fault.Fault) {
	from := time.Now()
	if err := system.CanFill(f.Folder, j.written()...); err != nil { // it may have been unmounted since
		j.problem("--fault %s: %v", f, err)
		return
	}
	d, err := system.NewDiskFill(f.Folder)
	if err != nil {
		j.problem("--fault %s: %v", f, err)
		return
	}
	ended := j.e.broken.begin()
	until := from.Add(f.Length)
	ctx, cancel := context.WithDeadline(ctx, until)
	defer cancel()
	_, err = d.Fill(ctx)
	full := err == nil
	if full {
		j.ended.Store(true) // a program that cannot write may end
		j.noted(fault.MarkFault, f.String(), byFault, from, time.Now())
		for err == nil && ctx.Err() == nil {
			j.wait(ctx, time.Now().Add(refill))
			_, err = d.Fill(ctx)
		}
	}
	switch {
	case !full && errors.Is(err, context.DeadlineExceeded):
		j.problem("--fault %s: the filesystem was not full within %s", f, units.FormatDuration(f.Length))
	case !full && errors.Is(err, context.Canceled):
		j.problem("--fault %s: the filesystem was not full yet when the run ended", f)
	case err != nil && (!full || ctx.Err() == nil):
		j.problem("--fault %s: %v", f, err)
	}
	from = time.Now()
	if err := d.Close(); err != nil {
		j.problem("--fault %s was not undone: %v", f, err)
		return
	}
	ended()
	if !full { // there was no fault
		return
	}
	j.noted(fault.MarkHeal, f.String(), byFault, from, time.Now())
}

// lateRelay is by how much the relay may be late without a warning.
const lateRelay = time.Millisecond

// relayNote says what the relay does to all times; "" without one.
func (e *execution) relayNote() string {
	if e.relay == nil {
		return ""
	}
	text := "all connections went through a relay, which net-delay needs: its cost is in the times, also in those before the fault"
	if late := e.relay.Late(); late > 0 {
		text += ". What it delayed was at most " + units.FormatDuration(late) + " late"
	}
	return text
}

// startRelay starts the relay if a fault delays the connections: they all go through it, from the
// beginning, so that what is measured before the fault can be compared.
func (e *execution) startRelay(ctx context.Context) error {
	if !slices.ContainsFunc(e.Workload.Faults(), func(f fault.Fault) bool { return f.Action == fault.NetDelay }) {
		return nil
	}
	r, err := fault.StartRelay(ctx)
	if err != nil {
		return &target.Error{Doing: "prepare --fault net-delay", Err: err, Hint: "leave it out to measure without it"}
	}
	e.relay, e.spec.Dial = r, r.Dial
	return nil
}
