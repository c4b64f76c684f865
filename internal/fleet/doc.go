// Package fleet has several machines (agents) fire one schedule under one operator. Serve is the
// process of an agent, and a Fleet is the operator's side of a run. What moves their messages is a
// Transport and an AgentTransport: a bus (package bus), or a connection within one process. The
// Kubernetes objects of a fleet are made here too (manifest.go).
//
// # The engine
//
// Every agent computes the whole schedule and fires only its own part of it. The plan of a run is its
// workload, resolved, and the number of clients of all agents together. An agent's share is which of
// them are its own. Frames are the intervals of a run, and the result is everything that an agent
// measured, all as compressed JSON (encoding.go).
//
// # The protocol
//
// The protocol consists of state machines (protocol_*.go): a coordinator for one run, and an
// agentProtocol on each machine. They have no goroutines, no clocks and no connections. Time comes in
// as arguments, messages and commands come out of Take. They know nothing of what is fired: a plan,
// frames and a result are bytes to them. So their tests are simulated worlds, with an engine that only
// counts (sim_*_test.go); TestProtocolIsPure keeps the files like that.
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
// # The invariant
//
// A run that ends as complete has every interval and the result of each agent exactly once, and all
// agents fired from T0 to the end of the schedule. Every other outcome says why.
package fleet
