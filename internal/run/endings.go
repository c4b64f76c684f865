package run

import "sync"

// endings are what a program must still do that exits without waiting for its run: undo faults,
// and then stop the processes that the run started. Safe for concurrent use.
type endings struct {
	report func(end func()) // Job.Started; may be nil

	mu      sync.Mutex
	faults  func() // nil: there is nothing to undo
	started func() // nil: none are left
}

// stop sets how to stop what the run started last.
func (x *endings) stop(end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.started = end
	x.pass()
}

// undo sets how to undo the faults that the run has made.
func (x *endings) undo(end func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.faults = end
	x.pass()
}

func (x *endings) pass() {
	faults, started := x.faults, x.started
	switch {
	case x.report == nil:
	case faults == nil && started == nil:
		x.report(nil)
	default:
		x.report(func() {
			if faults != nil {
				faults()
			}
			if started != nil {
				started()
			}
		})
	}
}
