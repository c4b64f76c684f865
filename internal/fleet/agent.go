package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"carronade/internal/advice"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
)

// An AgentTransport moves messages to the operator and back; see bus.Agent.
type AgentTransport interface {
	Send(message []byte) error
	Receive(f func(message []byte, at time.Time))
	Done() <-chan struct{}
	Err() error
}

// An AgentConfig describes an agent.
type AgentConfig struct {
	Bus   AgentTransport
	Spool Spool
	Info  Info
	Kinds []protocol.Kind
	// Allow refuses the settings of a run that this agent does not allow, such as files and
	// addresses; nil: it allows all.
	Allow func(settings []workload.Entry) error
	Host  any // this machine, described as in a report
	// Others is what else uses this machine; nil: each run measures it.
	Others *run.Others
	// Traces is the folder for a trace of each run, RUN.parquet; "": none are written.
	Traces string
	// Claim is called when a run begins. It returns what is called at its end, or why this agent
	// takes no part in it; nil: it always does.
	Claim func(run string) (release func(), err error)
	// Logf prints what happens; it is called by several goroutines.
	Logf func(format string, args ...any)
}

// An agent is the process of an agent. Its loop is the only goroutine that uses the protocol.
type agent struct {
	AgentConfig
	protocol *agentProtocol
	base     time.Time // 0 of the protocol's clock
	calls    chan func(now time.Duration)
	job      *job // nil: none
}

// A job is the run in progress.
type job struct {
	name    string
	stop    context.CancelFunc
	abort   chan struct{}
	aborted bool
	start   chan time.Time // capacity 1
	t0      atomic.Int64   // on the protocol's clock; 0 before the start is known
	lease   atomic.Int64   // since t0
}

// Serve runs an agent until the context ends or the bus refuses it. A run in progress is then
// stopped, and its result remains in the spool.
func Serve(ctx context.Context, cfg AgentConfig) error {
	a := &agent{AgentConfig: cfg, protocol: newAgentProtocol(cfg.Info, cfg.Spool), base: time.Now(), calls: make(chan func(time.Duration), 256)}
	over := make(chan struct{})
	defer close(over) // messages that come later must not wait for the loop
	cfg.Bus.Receive(func(message []byte, at time.Time) {
		m, err := decodeMessage(message)
		if err != nil {
			cfg.Logf("a message of the operator was ignored: %v", err)
			return
		}
		select {
		case a.calls <- func(time.Duration) { a.protocol.Receive(at.Sub(a.base), m) }:
		case <-over:
		}
	})
	timer := time.NewTimer(0)
	defer timer.Stop()
	leaving, stopped := ctx.Done(), cfg.Bus.Done()
	for {
		select {
		case call := <-a.calls:
			call(time.Since(a.base))
		case <-timer.C:
			a.protocol.Tick(time.Since(a.base))
		case <-leaving:
			if a.job == nil {
				return nil
			}
			leaving = nil // the run is stopped, and its result kept
			cfg.Logf("run %s is stopped: this agent ends", a.job.name)
			a.job.stop()
		case <-stopped:
			if a.job == nil {
				return cfg.Bus.Err()
			}
			stopped = nil
			a.job.stop()
		}
		a.act()
		if a.job == nil && (leaving == nil || stopped == nil) {
			return cfg.Bus.Err()
		}
		timer.Reset(min(time.Hour, max(0, a.protocol.Next()-time.Since(a.base))))
	}
}

// act does what the protocol asks for.
func (a *agent) act() {
	send, do := a.protocol.Take()
	for _, m := range send {
		_ = a.Bus.Send(m.Encode()) // a lost message is sent again
	}
	for _, c := range do {
		a.Logf("%s run %s%s", c.Do, c.Run, because(c.Reason))
		switch j := a.job; {
		case c.Do == orderOpen:
			a.open(&c)
		case j == nil || j.name != c.Run: // it has ended
		case c.Do == orderStart:
			j.t0.Store(int64(c.At))
			a.renew()
			j.start <- a.base.Add(c.At)
		case c.Do == orderStop:
			j.stop()
		case c.Do == orderAbort && !j.aborted:
			j.aborted = true
			close(j.abort)
			j.stop()
		}
	}
	a.renew()
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// renew passes the lease on to the engine. A stop ends the lease as well, but the engine
// knows of that.
func (a *agent) renew() {
	if a.job == nil || a.job.t0.Load() == 0 {
		return
	}
	if end := a.protocol.LeaseEnd(); end > 0 {
		a.job.lease.Store(int64(end) - a.job.t0.Load())
	}
}

// open starts the engine for a run.
func (a *agent) open(c *command) {
	ctx, cancel := context.WithCancel(context.Background())
	j := &job{name: c.Run, stop: cancel, abort: make(chan struct{}), start: make(chan time.Time, 1)}
	j.lease.Store(int64(load.Never))
	a.job = j
	go func() {
		m, err := a.measure(ctx, j, c.Plan, c.Share)
		cancel()
		var data []byte
		if m != nil {
			var failed error
			if data, failed = pack(m); failed != nil {
				err = errors.Join(err, fmt.Errorf("encode the result: %w", failed))
			}
		}
		a.calls <- func(now time.Duration) {
			a.job = nil
			a.protocol.Ended(now, data, err)
			a.Logf("run %s has ended%s", j.name, because(text(err)))
		}
	}()
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// measure runs the share of a workload. A fault of a target must not end the agent, since it
// has results that exist nowhere else.
func (a *agent) measure(ctx context.Context, j *job, planned, own []byte) (m *run.Measured, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the program failed: %v", p)
			a.Logf("run %s: %v\n%s", j.name, p, debug.Stack())
		}
	}()
	if a.Claim != nil {
		release, err := a.Claim(j.name)
		if err != nil {
			return nil, err
		}
		defer release()
	}
	w, p, s, err := a.parse(planned, own)
	if err != nil {
		return nil, err
	}
	opened := false
	var records *run.Records
	if s.Recorded {
		records = run.NewRecords()
	}
	traced := ""
	if a.Traces != "" && !s.Reads {
		traced = filepath.Join(a.Traces, j.name+".parquet")
	}
	m, err = run.Measure(ctx, run.Job{
		Workload: w, Version: a.Info.Version, RunID: p.RunID, Host: a.Host, Others: a.Others, Abort: j.abort, Trace: traced,
		Disturbed: func(_, text string) {
			a.Logf("run %s: warning: %s: results may not be trusted (carronade doctor)", j.name, text)
			a.calls <- func(now time.Duration) { a.protocol.Disturbed(now, text) }
		},
		Logf: func(format string, args ...any) { a.Logf("run "+j.name+": "+format, args...) },
		Share: &run.Share{
			Portion: load.Portion{From: s.From, To: s.To}, Of: p.Clients, Lease: &j.lease, Records: records, Reads: s.Reads,
			Start: func(ctx context.Context) (time.Time, error) {
				opened = true
				a.calls <- func(now time.Duration) { a.protocol.Opened(now, nil) }
				select {
				case at := <-j.start:
					return at, nil
				case <-ctx.Done():
					return time.Time{}, ctx.Err()
				}
			},
		},
		Watch: func(snap load.Snapshot) {
			data, err := packSnapshot(&snap, records.Take(snap.Number, framedRecords))
			if err != nil {
				a.Logf("run %s: an interval could not be encoded: %v", j.name, err)
				return
			}
			a.calls <- func(now time.Duration) { a.protocol.Frame(now, data) }
		},
	})
	if hint := advice.Hint(err); hint != "" {
		err = fmt.Errorf("%w (%s)", err, hint)
	}
	if m != nil {
		m.Records = compress(m.Records)
	}
	if m == nil && ctx.Err() != nil {
		return nil, nil // stopped before it fired anything: that is not a failure
	}
	if !opened && err != nil {
		a.calls <- func(now time.Duration) { a.protocol.Opened(now, err) }
	}
	return m, err
}

// parse reads a plan and checks it against the rules of this agent.
func (a *agent) parse(planned, own []byte) (*workload.Workload, *plan, *share, error) {
	var p plan
	var s share
	if err := errors.Join(json.Unmarshal(planned, &p), json.Unmarshal(own, &s)); err != nil {
		return nil, nil, nil, fmt.Errorf("read the plan: %w", err)
	}
	if s.From < 0 || s.To < s.From || s.To == s.From != s.Reads || s.To > p.Clients || p.Clients > 1<<20 || p.Clients < 1 {
		return nil, nil, nil, fmt.Errorf("the plan has the clients %d to %d of %d", s.From, s.To, p.Clients)
	}
	doc, err := workload.ParseDocument("plan", p.Workload)
	if err != nil {
		return nil, nil, nil, err
	}
	if a.Allow != nil {
		for _, part := range append([]*workload.Document{doc}, doc.Parts...) {
			if err := a.Allow(part.Entries); err != nil {
				return nil, nil, nil, err
			}
		}
	}
	w, err := workload.Resolve(a.Kinds, nil, doc)
	if err != nil {
		return nil, nil, nil, err
	}
	if w.Has("fault") || w.Has("exec") { // whatever the rules allow: nothing that comes over the bus is run
		return nil, nil, nil, errors.New("an agent makes no faults and runs no commands")
	}
	w.SetClients(p.Clients)
	return w, &p, &s, nil
}
