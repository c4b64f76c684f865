package host

// An Identity identifies a process so that another one can find out later
// whether it is still there: process numbers are reused.
type Identity struct {
	// Host identifies the machine since it started, and the namespace of PID: a
	// container has its own.
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // when the process began, in the system's units; "" if unknown
}

// Self is this process.
func Self() Identity { return self() }

// Identify returns the identity of a running process of this machine; false if
// there is none.
func Identify(pid int) (Identity, bool) {
	start, ok := startOf(pid)
	return Identity{Host: self().Host, PID: pid, Start: start}, ok
}

// Alive reports whether the process is still running. For a process of another
// host that is not known.
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
