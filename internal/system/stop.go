package system

import (
	"context"
	"errors"
	"os"
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// stopInterval is how often the processes that are being stopped are checked.
const stopInterval = 20 * time.Millisecond

// Stop ends what was started: TERM to the command, then to the processes that
// it left running, and KILL to all that remain after Spec.StopWithin. A system
// that was not started here is left alone, and only the watching ends. The last
// figures are read before. A system that had to be killed is an error; one that
// died before is not (see Died). Later calls do nothing.
func (s *System) Stop() error { return s.stop() }

func (s *System) end() error {
	s.mu.Lock()
	s.stopping = true
	tree := s.tree
	if tree != nil && tree.Alive() {
		if l := tree.Final(); l.Processes > 0 {
			s.latest = l
		}
	}
	s.mu.Unlock()
	err := s.endProcesses(tree)
	s.printer.close()
	if s.container != nil {
		s.container.close(s.spec.Image != "")
	}
	s.mu.Lock()
	if s.tree != nil {
		s.tree.Close()
		s.tree = nil
	}
	s.mu.Unlock()
	s.limits.remove()
	s.reading.Lock()
	defer s.reading.Unlock()
	if s.gc != nil { // pauses since the last reading
		_, _ = s.gc.Figures(context.Background())
	}
	for _, source := range []interface{ Close() }{closer(s.vars), closer(s.metrics), closer(s.gc)} {
		if source != nil {
			source.Close()
		}
	}
	if s.gcDir != "" {
		_ = os.RemoveAll(s.gcDir)
	}
	if s.spec.Build != nil {
		s.spec.Build.Release()
	}
	return err
}

// closer is nil for a nil pointer.
func closer[T any, P interface {
	*T
	Close()
}](p P) interface{ Close() } {
	if p == nil {
		return nil
	}
	return p
}

func (s *System) endProcesses(tree *host.Tree) error {
	if s.child == nil {
		return nil // it was not started here
	}
	ticker := time.NewTicker(stopInterval)
	defer ticker.Stop()
	deadline := time.Now().Add(s.spec.StopWithin)
	asked := make(map[int]bool) // processes that the command left running; each is asked once
	if s.container != nil {
		s.container.stop(s.spec.StopWithin)
		deadline = deadline.Add(engineTimeout)
	} else {
		s.child.Terminate()
	}
	for time.Now().Before(deadline) {
		gone := s.child.State() != nil
		if gone {
			if left := s.signal(tree, false, asked); left == 0 {
				<-s.ended
				s.child.Kill() // processes of its group that the tree missed
				return nil
			}
		}
		<-ticker.C
	}
	if s.container != nil {
		s.container.kill()
	}
	s.limits.kill()
	s.child.Kill()
	// Remaining processes may start others, so repeat until none are left.
	left := 0
	for range 50 {
		left = s.signal(tree, true, nil)
		if left == 0 && s.child.State() != nil {
			break
		}
		<-ticker.C
	}
	if left > 0 || s.child.State() == nil {
		return &protocol.Error{Doing: "stop the system", Err: errors.New("it did not exit, even after KILL"), Hint: "look at " + s.lastMember(tree) + " with ps: it may belong to another user"}
	}
	<-s.ended
	s.warn("the system did not end within " + s.spec.StopWithin.String() + " of the request to stop, and was killed")
	return &protocol.Error{Doing: "stop the system", Err: errors.New("it did not end within " + s.spec.StopWithin.String() + " of TERM and was killed"), Hint: "give it longer with --system-stop-within"}
}

// killTimeout is how long an engine may take to kill a container.
const killTimeout = 5 * time.Second

// Kill ends what was started at once, without TERM: for a program that is about
// to exit, and calls no other method any more. When it returns, all processes
// are gone that this process may end.
func (s *System) Kill() {
	s.mu.Lock()
	child, tree := s.child, s.tree
	s.stopping = s.stopping || child != nil
	s.mu.Unlock()
	if child == nil {
		return
	}
	if s.container != nil && s.spec.Image != "" {
		ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
		_, _ = s.container.run(ctx, "rm", "--force", "--volumes", s.container.name)
		cancel()
	}
	child.Kill()
	ticker := time.NewTicker(stopInterval)
	defer ticker.Stop()
	for range 50 {
		if s.signal(tree, true, nil) == 0 && child.State() != nil {
			break
		}
		<-ticker.C
	}
	s.limits.remove()
	if s.gcDir != "" {
		_ = os.RemoveAll(s.gcDir)
	}
}

// signal sends TERM or KILL to the processes of the tree that are alive, except
// those in asked, and adds them to asked. It returns how many are alive.
func (s *System) signal(tree *host.Tree, kill bool, asked map[int]bool) (alive int) {
	if tree == nil || s.container != nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return 0
	}
	tree.Look()
	members := tree.Members()
	for _, pid := range members {
		if asked[pid] {
			continue
		}
		if asked != nil {
			asked[pid] = true
		}
		tree.Signal(pid, kill)
	}
	return len(members)
}

// lastMember names a remaining process.
func (s *System) lastMember(tree *host.Tree) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tree != nil && s.tree != nil {
		if m := tree.Members(); len(m) > 0 {
			return "process " + itoa(m[0])
		}
	}
	return "process " + itoa(s.child.Pid())
}
