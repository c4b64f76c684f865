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

// watchConnections watches whether faults of the run have left it without connections, until the
// run ends. If so, and the measurement is not over, it closes e.unconnected. Targets that do not know their connections are not watched.
func (e *execution) watchConnections(r *load.Run, j *injector) {
	of, ok := e.session.Target().(load.Connected)
	if j == nil || !ok {
		return
	}
	none := make(chan struct{})
	e.unconnected = none
	go func() {
		tick := time.NewTicker(lookForConnections)
		defer tick.Stop()
		var since time.Time
		var before load.Progress
		for {
			select {
			case <-tick.C:
			case <-r.Done():
				return
			}
			n, known := of.Connected()
			switch {
			case n > 0 || !known || !j.ended.Load() || j.mending.Load() > 0:
				since = time.Time{}
			case since.IsZero():
				since, before = time.Now(), r.Progress()
			case time.Since(since) >= withoutConnection && !r.Measured() && r.Progress().Waits(before):
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
