package system

import (
	"context"
	"errors"
	"os/exec"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// Members are the processes of the system now; none if it is not watched.
func (s *System) Members() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return nil
	}
	s.tree.Look()
	return s.tree.Members()
}

// CanRestart returns why the system cannot be started again; nil if it can.
func (s *System) CanRestart() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.spec.Command == "":
		return errors.New("it was not started here with --system-cmd")
	case s.tree == nil:
		return errors.New("its processes are not known: that needs Linux")
	case s.forked:
		return errors.New("its command went into the background")
	case s.spec.JVMGC:
		return errors.New("the log of --system-jvm-gc is of one process")
	}
	return nil
}

// Restart kills all processes of a system that was started here, waits for down, starts its command
// again, and waits until it is ready. That is not an end of the system: Died stays open. killed is
// called when the processes are gone. Only one Restart at a time; Stop comes after it.
func (s *System) Restart(ctx context.Context, down time.Duration, killed func()) error {
	if err := s.CanRestart(); err != nil {
		return &protocol.Error{Doing: "restart the system", Err: err, Hint: "leave out --fault restart=system"}
	}
	s.mu.Lock()
	s.restarting = true
	old := s.child
	tree := s.tree
	s.mu.Unlock()
	err := s.replace(ctx, old, tree, down, killed)
	if err != nil { // it is not running any more
		s.mu.Lock()
		over := s.stopping || ctx.Err() != nil
		s.mu.Unlock()
		s.recordEnd(exitOf(old), over)
		return err
	}
	return s.await(ctx)
}

// replace ends the old command and its processes, and starts the command again.
func (s *System) replace(ctx context.Context, old *host.Child, tree *host.Tree, down time.Duration, killed func()) error {
	old.Kill()
	ticker := time.NewTicker(stopInterval)
	defer ticker.Stop()
	for s.signal(tree, true, nil) > 0 || old.State() == nil { // some may start others before they end
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	killed()
	select {
	case <-time.After(down):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return s.relaunch()
}

// relaunch starts the command again. If Stop or Kill came first, it starts nothing.
func (s *System) relaunch() error {
	cmd := exec.Command(s.words[0], s.words[1:]...) //nolint:gosec,noctx // what the user asked to run; ended by Stop
	cmd.Dir, cmd.Env = s.dir, s.env
	s.limits.apply(cmd)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return errors.New("the run has ended")
	}
	child, err := host.StartChild(cmd, s.line)
	if err != nil {
		return &protocol.Error{Doing: "start " + s.shown + " again", Err: err, Hint: "it could be started before: see whether its program is still there"}
	}
	s.child, s.restarting = child, false
	go s.wait(child)
	return nil
}

// line takes a line that the system prints.
func (s *System) line(line string) {
	line = s.mask.WithoutCut(line, host.MaxLine)
	s.tail.add(line)
	s.output.add(line)
	if s.printer != nil {
		s.printer.add(line)
	}
}
