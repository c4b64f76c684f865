// Package fleet is the protocol by which one operator process makes several machines
// (agents) fire one schedule. It consists of state machines: a Coordinator for one run,
// and an Agent on each machine. They have no goroutines, no clocks and no connections.
// Time comes in as arguments, messages and commands come out of Take. Every agent
// computes the whole schedule and fires only its own part of it, so the package knows
// nothing of what is fired: a plan, the intervals of a run (frames) and its result are
// bytes here.
//
//	operator                                   agent
//	   |  ping  ----------------------------->   |
//	   |  <-----------------------------  pong   |   who it is; 16 times: its clock
//	   |  load (plan, hash)  --------------->    |   opens its target
//	   |  <----------------------  status: ready |   all within 60 s
//	   |  beat: arm, start at T0  ----------->   |   T0 on the agent's own clock
//	   |  <----------------------  status: armed |   all 1 s before T0, or cancelled
//	   |  beat: go  ------------------------->   |
//	  T0 . . . . . . . . . . . . . . . . . . . . T0
//	   |  <---------------------------  frame n  |   in the spool first; again until
//	   |  beat: acked up to n  -------------->   |   acked
//	   |  <--------------------  status: running |   both every 500 ms
//	   |  <----------  status: ended, part k     |   the result, in parts
//	   |  beat: release  -------------------->   |   removes the run from its spool
//	   |  <-------------------  status: released |
//
// Any message may be lost, doubled, late or out of order. What matters is repeated in
// each status and each beat until the other side shows that it has it; a frame is known
// by run, agent, incarnation and number.
//
// An agent sends to its target only under a lease: it ends Lease after the agent sent
// the newest status that the operator has confirmed. The operator therefore knows, on
// its own clock, when an agent that it no longer hears has stopped: Lease after the last
// status that arrived. An agent whose lease has ended stops by itself and sends nothing
// again in that run.
//
// The invariant: a run that ends as complete has every interval and the result of each
// agent exactly once, and all agents fired from T0 to the end of the schedule. Every
// other outcome says why.
//
// The Kubernetes objects of a fleet are made here too (manifest.go).
package fleet

import "time"

// Protocol is the version of the messages. Both sides must have the same.
const Protocol = 2

// Times of the protocol.
const (
	Heartbeat    = 500 * time.Millisecond // between two beats, and between two statuses
	SuspectAfter = 2 * time.Second        // of silence
	Lease        = 5 * time.Second        // an agent stops firing without a confirmed status; after this much silence the operator calls it dead
	ReadyWithin  = 60 * time.Second       // an agent opens its target
	ConfirmAhead = time.Second            // before T0 all agents must have confirmed it
	AbortWithin  = 10 * time.Second       // an engine ends after an abort; otherwise its agent is given up
	ReleaseTries = 5 * time.Second        // for which the operator asks agents to remove a run from their spools

	urgent = 100 * time.Millisecond // between beats while an agent has not followed a new order
)

// Sizes of the protocol, in bytes.
const (
	MaxMessage = 1 << 20   // a message, encoded
	MaxPlan    = 512 << 10 // a plan with one agent's share
	MaxFrame   = 640 << 10 // a frame
	MaxResult  = 64 << 20  // a result
	PartSize   = 256 << 10 // a part of a result

	window      = 32      // records in flight
	windowBytes = 4 << 20 // of records in flight
)
