package fleet

import "time"

// An engineOrder is an order to an agent's engine.
type engineOrder string

// The orders to an engine.
const (
	orderOpen  engineOrder = "open"  // open the target of Plan and Share, then call Opened
	orderStart engineOrder = "start" // fire from At on; call Frame for each interval and Ended at the end
	orderStop  engineOrder = "stop"  // fire nothing more, wait for answers, call Ended
	orderAbort engineOrder = "abort" // end at once, call Ended
)

// A command is an order to an agent's engine. After orderOpen, the engine calls Opened once.
// After orderStart, orderStop or orderAbort it calls Ended once, whichever came first; an engine that
// is stopped before it was opened or started calls Ended too, and need not call Opened.
// An engine that has ended ignores orders that were under way.
type command struct {
	Do     engineOrder
	Run    string
	Plan   []byte        // orderOpen
	Share  []byte        // orderOpen: what differs for each agent, from runConfig.Shares
	At     time.Duration // orderStart: T0 on the agent's monotonic clock
	Reason string        // orderStop, orderAbort
}

// An addressed is a message to one agent.
type addressed struct {
	Agent   string
	Message *message
}

// An event is what a coordinator reports to the program around it.
type event interface{ event() }

// The events of a run.
type (
	// agentReady says that an agent has opened its target.
	agentReady struct {
		Agent string
	}
	// agentDisturbed says, once, what else uses the machine of an agent.
	agentDisturbed struct{ Agent, Text string }
	// agentFailed says that an agent takes no further part. The text of Err names no agent.
	agentFailed struct {
		Agent string
		Err   error
	}
	// runStarted says that all agents have confirmed T0 and may go.
	runStarted struct {
		T0   time.Duration // on the coordinator's clock
		Skew time.Duration // the starts of any two agents differ by at most this
	}
	// frameOf has an interval of an agent, once each, in the order of the numbers.
	frameOf struct {
		Agent  string
		Number uint64 // from 1
		Data   []byte
	}
	// intervalClosed says that interval Number has come from all agents that still take part.
	intervalClosed struct{ Number uint64 }
	// agentSuspect says that no message of an agent came for suspectAfter.
	agentSuspect struct {
		Agent  string
		Silent time.Duration
	}
	// agentBack says that a message of a suspect came again.
	agentBack struct{ Agent string }
	// agentDead says that no message came for Lease. The agent has stopped firing by itself, at the
	// latest at MayHaveFiredUntil on the coordinator's clock.
	agentDead struct {
		Agent             string
		MayHaveFiredUntil time.Duration
	}
	// resultOf says that the run of an agent has ended, and all of it has arrived. Data is nil if
	// it has no result; Err is what its engine said, nil if the run ended in order.
	resultOf struct {
		Agent string
		Data  []byte
		Err   error
	}
	// runFinished says that nothing more will come. Release should follow once all is stored.
	runFinished struct{ Outcome runOutcome }
)

func (agentReady) event()     {}
func (agentDisturbed) event() {}
func (agentFailed) event()    {}
func (runStarted) event()     {}
func (frameOf) event()        {}
func (intervalClosed) event() {}
func (agentSuspect) event()   {}
func (agentBack) event()      {}
func (agentDead) event()      {}
func (resultOf) event()       {}
func (runFinished) event()    {}

// A runState is how a run ended, or a share of it.
type runState string

// The states of a runOutcome.
const (
	stateComplete  runState = "complete"  // every agent fired all of its share, and all reports are here
	stateMarked    runState = "marked"    // the reports are here, with reasons not to take them for the whole
	stateAborted   runState = "aborted"   // a failure ended the run
	stateCancelled runState = "cancelled" // nothing was fired
)

// A runOutcome is how a run ended.
type runOutcome struct {
	State   runState
	Reasons []string // empty only if complete
	Agents  []agentOutcome
	T0      time.Duration // on the coordinator's clock; 0 if no start was agreed
	Skew    time.Duration // the starts of any two agents differ by at most this
}

// An agentOutcome is how a run ended on one agent.
type agentOutcome struct {
	Name        string
	Incarnation string   // "" if it was never heard
	State       runState // complete; marked: stopped early, its report is here; aborted: its report is not all here, or its engine failed; cancelled: it never fired
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
