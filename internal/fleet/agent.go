package fleet

// An Agent is the agent's side of runs, one at a time. Its methods are called by one
// goroutine, with times of this machine's monotonic clock, except LeaseEnd, which any
// goroutine may call. After each call the caller takes what Take returns, and calls Tick
// at the latest at Next.
//
//	func NewAgent(info Info, spool Spool) *Agent
//	func (a *Agent) Receive(now time.Duration, m *Message)
//	func (a *Agent) Tick(now time.Duration)
//	func (a *Agent) Opened(now time.Duration, err error)
//	func (a *Agent) Frame(now time.Duration, data []byte)
//	func (a *Agent) Ended(now time.Duration, result []byte, err error)
//	func (a *Agent) Take() ([]*Message, []Command)
//	func (a *Agent) Next() time.Duration
//	func (a *Agent) LeaseEnd() time.Duration // the engine sends nothing after it
type Agent struct{}
