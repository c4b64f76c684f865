package fleet

import "time"

// A Do is an order to an agent's engine.
type Do string

// The commands to an engine.
const (
	Open  Do = "open"  // open the target of Plan and Share, then call Agent.Opened
	Start Do = "start" // fire from At on; call Agent.Frame for each interval and Agent.Ended at the end
	Stop  Do = "stop"  // fire nothing more, wait for answers, call Agent.Ended
	Abort Do = "abort" // end at once, call Agent.Ended
)

// A Command is an order to an agent's engine. After Open, the engine calls Opened once.
// After Start, Stop or Abort it calls Ended once, whichever came first; an engine that
// is stopped before it was opened or started calls Ended too, and need not call Opened.
// An engine that has ended ignores orders that were under way.
type Command struct {
	Do     Do
	Run    string
	Plan   []byte        // Open
	Share  []byte        // Open: what differs for each agent, from Config.Shares
	At     time.Duration // Start: T0 on the agent's monotonic clock
	Reason string        // Stop, Abort
}

// An Addressed is a message to one agent.
type Addressed struct {
	Agent   string
	Message *Message
}

// An Event is what a coordinator tells the program around it.
type Event interface{ event() }

// The events of a run.
type (
	// AgentReady says that an agent has opened its target.
	AgentReady struct {
		Agent string
		Info  Info
	}
	// AgentFailed says that an agent takes no further part. The text of Err names no agent.
	AgentFailed struct {
		Agent string
		Err   error
	}
	// Started says that all agents have confirmed T0 and may go.
	Started struct {
		T0   time.Duration // on the coordinator's clock
		Skew time.Duration // the starts of any two agents differ by at most this
	}
	// FrameOf has an interval of an agent, once each, in the order of the numbers.
	FrameOf struct {
		Agent  string
		Number uint64 // from 1
		Data   []byte
	}
	// Closed says that interval Number has come from all agents that still take part.
	Closed struct{ Number uint64 }
	// Suspect says that nothing was heard of an agent for SuspectAfter.
	Suspect struct {
		Agent  string
		Silent time.Duration
	}
	// Back says that a suspect was heard again.
	Back struct{ Agent string }
	// Dead says that nothing was heard for Lease. The agent has stopped firing by itself, at the
	// latest at MayHaveFiredUntil on the coordinator's clock.
	Dead struct {
		Agent             string
		MayHaveFiredUntil time.Duration
	}
	// ResultOf says that the run of an agent has ended, and all of it has arrived. Data is nil if
	// it has no result; Err is what its engine said, nil if the run ended in order.
	ResultOf struct {
		Agent string
		Data  []byte
		Err   error
	}
	// Finished says that nothing more will come. Release should follow once all is stored.
	Finished struct{ Outcome Outcome }
)

func (AgentReady) event()  {}
func (AgentFailed) event() {}
func (Started) event()     {}
func (FrameOf) event()     {}
func (Closed) event()      {}
func (Suspect) event()     {}
func (Back) event()        {}
func (Dead) event()        {}
func (ResultOf) event()    {}
func (Finished) event()    {}

// A State is how a run ended, or a share of it.
type State string

// The states of an Outcome.
const (
	Complete  State = "complete"  // every agent fired all of its share, and all reports are here
	Marked    State = "marked"    // the reports are here, with reasons not to take them for the whole
	Aborted   State = "aborted"   // a failure ended the run
	Cancelled State = "cancelled" // nothing was fired
)

// An Outcome is how a run ended.
type Outcome struct {
	State   State
	Reasons []string // empty only if complete
	Agents  []AgentOutcome
	T0      time.Duration // on the coordinator's clock; 0 if no start was agreed
	Skew    time.Duration // the starts of any two agents differ by at most this
}

// An AgentOutcome is how a run ended on one agent.
type AgentOutcome struct {
	Name        string
	Incarnation string // "" if it was never heard
	State       State  // Complete; Marked: stopped early, its report is here; Aborted: its report is not all here, or its engine failed; Cancelled: it never fired
	Err         string
	Frames      uint64 // that arrived
	Result      bool   // arrived
	Lapsed      bool   // it stopped by itself because it heard nothing of the operator

	Offset      time.Duration // the agent's clock minus the coordinator's, at T0
	BoundStart  time.Duration // the largest error of Offset
	BoundEnd    time.Duration // the same at the end
	Drift       time.Duration // of the agent's clock against the coordinator's from T0 to the end
	MinRTT      time.Duration // shortest round trip
	Suspected   int           // how often
	LongestGone time.Duration // longest silence

	// MayHaveFiredUntil, for an agent that was lost while it fired: it has stopped since,
	// on the coordinator's clock. 0 for others.
	MayHaveFiredUntil time.Duration
}
