package run

import (
	"time"

	"carronade/load"
	"carronade/units"
)

// withoutConnection is how long a run goes on without any connection after a fault of its own that ended
// processes: a supervisor, or a person, may start them again.
const withoutConnection = time.Minute

// lookForConnections is how often the run counts its connections.
const lookForConnections = time.Second

// disconnected reports whether a target or a source knows that it has no connection.
func disconnected(connected func() (n int, known bool)) bool {
	if connected == nil {
		return false
	}
	n, known := connected()
	return known && n == 0
}

// A watched is a run whose connections are counted.
type watched interface {
	stoppable
	// waiting returns a function that reports whether events have waited for a connection since then, and
	// the measurement is not over.
	waiting() func() bool
}

// A watchedRun is a run that sends.
type watchedRun struct{ *load.Run }

func (r watchedRun) waiting() func() bool {
	before := r.Progress()
	return func() bool { return !r.Measured() && r.Progress().Waits(before) }
}

// A watchedReading is a run that reads: what it waits for, only the system knows.
type watchedReading struct{ *load.Reading }

// End does nothing: a run that reads waits for no answers.
func (watchedReading) End(load.Reason) {}

func (watchedReading) waiting() func() bool { return func() bool { return true } }

// watchConnections watches whether faults of the run have left it without connections, until the
// run ends. If so, and the measurement is not over, it closes e.unconnected. Targets and sources that
// do not know their connections are not watched.
func (e *execution) watchConnections(connected func() (n int, known bool), run watched, j *injector) {
	if j == nil || connected == nil {
		return
	}
	none := make(chan struct{})
	e.unconnected = none
	go func() {
		tick := time.NewTicker(lookForConnections)
		defer tick.Stop()
		var since time.Time
		var waits func() bool
		for {
			select {
			case <-tick.C:
			case <-run.Done():
				return
			}
			switch {
			case !disconnected(connected) || !j.ended.Load() || j.repairs.Load() > 0:
				since = time.Time{}
			case since.IsZero():
				since, waits = time.Now(), run.waiting()
			case time.Since(since) >= withoutConnection && waits():
				e.Logf("the run ends: its fault left no connection, and none came back within %s", units.FlagDuration(withoutConnection))
				close(none)
				return
			}
		}
	}()
}

// leftAlone says that faults of the run have left it without connections; otherwise "".
func (e *execution) leftAlone() string {
	select {
	case <-e.unconnected:
		return "none came back within " + units.FlagDuration(withoutConnection)
	default:
		return ""
	}
}
