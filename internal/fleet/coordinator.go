package fleet

import "time"

// A Config is what a coordinator needs to know of its run.
type Config struct {
	Run     string // see ValidRun
	Session string // a name that no other coordinator of this run ever had, such as a random one
	Version string // of the program, which all agents must have
	Layout  string // of the histograms, which all agents must have

	Plan   []byte            // for all agents, opaque
	Shares map[string][]byte // by agent: what differs, opaque; with Plan at most MaxPlan
	Agents []string          // names, different ones

	// Recover collects an earlier run of the same name from the agents' spools. Nothing
	// is fired; Plan and Shares are not used.
	Recover bool

	KeepGoing     bool          // after a failure the other agents go on
	MinAgents     int           // with KeepGoing: so many, or the run is aborted; 0: one
	MaxClockError time.Duration // 0: 10 ms
	Interval      time.Duration // of frames; clocks must agree to a tenth of it; 0: one second
	StartMargin   time.Duration // from the agreement to T0, beside four round trips; 0: 3 s
}

// NewCoordinator returns the coordinator of one run. It fails if the configuration
// cannot work. A Coordinator is not safe for concurrent use: one goroutine calls its
// methods, with times of one monotonic clock. After each call it takes what Take
// returns, and calls Tick at the latest at Next.
//
//	func NewCoordinator(cfg Config) (*Coordinator, error)
//	func (c *Coordinator) Receive(now time.Duration, agent string, m *Message)
//	func (c *Coordinator) Unreadable(now time.Duration, agent string, err error) // DecodeMessage failed
//	func (c *Coordinator) Tick(now time.Duration)
//	func (c *Coordinator) Stop(now time.Duration, reason string)
//	func (c *Coordinator) Abort(now time.Duration, reason string)
//	func (c *Coordinator) Take() ([]Addressed, []Event)
//	func (c *Coordinator) Next() time.Duration
//	func (c *Coordinator) Release(now time.Duration) // after Finished, once all is stored: agents delete
//	func (c *Coordinator) Done() bool                // after Release, and a little later
type Coordinator struct{}
