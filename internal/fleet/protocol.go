package fleet

import "time"

// protocolVersion is the version of the messages. Both sides must have the same.
const protocolVersion = 2

// Times of the protocol.
const (
	Heartbeat    = 500 * time.Millisecond // between two beats, and between two statuses
	suspectAfter = 2 * time.Second        // of silence
	Lease        = 5 * time.Second        // an agent stops firing without a confirmed status; after this much silence the operator calls it dead
	readyWithin  = 60 * time.Second       // an agent opens its target
	confirmAhead = time.Second            // before T0 all agents must have confirmed it
	abortWithin  = 10 * time.Second       // an engine ends after an abort; otherwise its agent is given up
	releaseTries = 5 * time.Second        // for which the operator asks agents to remove a run from their spools

	urgent = 100 * time.Millisecond // between beats while an agent has not followed a new order
)

// Sizes of the protocol, in bytes.
const (
	maxMessage = 1 << 20   // a message, encoded
	maxPlan    = 512 << 10 // a plan with one agent's share
	maxFrame   = 640 << 10 // a frame
	maxResult  = 64 << 20  // a result
	partSize   = 256 << 10 // a part of a result

	window      = 32      // records in flight
	windowBytes = 4 << 20 // of records in flight
)
