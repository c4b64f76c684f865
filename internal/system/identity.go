package system

// An Identity names a process so that another one, later, can tell whether it
// is still there: process numbers are given again.
type Identity struct {
	// Host is the machine since it started, and whose process numbers PID is
	// one of: a container has its own.
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // when the process began, as the system counts; "" where it does not say
}

// Self is this process.
func Self() Identity { return self() }

// Alive tells whether the process still runs. It is not known of a process of
// another host.
func (id Identity) Alive() (alive, known bool) {
	me := self()
	if id.Host != me.Host || id.Host == "" {
		return false, false
	}
	if id.PID == me.PID {
		return id.Start == me.Start, true
	}
	start, ok := startOf(id.PID)
	return ok && start == id.Start, true
}
