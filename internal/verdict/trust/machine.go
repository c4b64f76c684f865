package trust

import (
	"time"

	"carronade/internal/host"
	"carronade/protocol"
)

// MachineFacts are what is known about a machine, and about the run that it is judged for.
type MachineFacts struct {
	Host   host.Host
	State  host.State
	Window *MachineWindow // nil: nothing was measured

	Clients     int   // of the run; 0: not known
	Connections int   // of the run; 0: not known
	OtherFiles  int   // that a process needs in addition to its connections, as a run counts them
	SendBuffer  int64 // bytes, as requested for connections; 0: not requested
	RecvBuffer  int64

	Target   bool         // there is one
	Routes   []host.Route // to the addresses of the target; empty: not known
	Measured bool         // the generator's limit was measured before (carronade calibrate)
}

// A MachineWindow is what was measured over a moment.
type MachineWindow struct {
	Length    time.Duration
	Busy      float64 // processors that all programs used; -1: not known
	Own       float64 // of them, by this program
	Steal     float64 // share of the processors' time that the hypervisor gave to others
	Throttled time.Duration
	Swapped   uint64          // bytes that went to swap space or came from it
	Late      []time.Duration // by how much waits of a sending thread were too long, sorted
	Wait      time.Duration   // how long each of them should have been
	ClockRead time.Duration   // mean time to read the clock; 0: not known
	Loopback  float64         // bytes/s from this machine to itself; 0: not measured
}

// local reports whether the target, if there is one, is on this machine.
func (f *MachineFacts) local() bool {
	for _, r := range f.Routes {
		if !r.Here {
			return false
		}
	}
	return len(f.Routes) > 0
}

// MachineFindings returns the findings about a machine, in a fixed order.
func MachineFindings(f *MachineFacts) []protocol.Finding {
	var out []protocol.Finding
	for _, check := range []func(*MachineFacts) protocol.Finding{
		processors, processorLimit, taskLimit, otherLoad, steal, lateness, clockSource, governor,
		memory, swap, hugePages,
		openFiles, localPorts, socketBuffers, loopback, network,
		synchronization, calibration,
	} {
		if one := check(f); one.Check != "" {
			out = append(out, one)
		}
	}
	return out
}

// unknown is the finding of a check whose facts this system does not show.
func unknown(check, found string) protocol.Finding {
	return protocol.Finding{Check: check, Level: protocol.LevelUnknown, Found: found}
}
