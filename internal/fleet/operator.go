package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/load"
	"carronade/measure"
)

// A Transport moves messages to agents and back; see bus.Operator.
type Transport interface {
	Send(agent string, message []byte) error
	Receive(f func(agent string, message []byte, at time.Time))
}

// A Fleet is the operator's side of runs. It runs one at a time. It implements run.Fleet.
type Fleet struct {
	Bus    Transport
	Agents []string // names of those that take part; see Look
	// Reader is the one of them that reads what the others send; "" if none does.
	Reader string
	Config // of each run
	// Recover is a run of an operator that has ended: Fire collects what the agents still
	// have of it, and nothing is sent. "": Fire fires.
	Recover string

	inbox chan delivery
	heard bool

	mu      sync.Mutex
	foreign map[string]error // by agent: that it speaks another version of the protocol
}

// A Config is what an operator may choose.
type Config struct {
	Version       string // of the program
	KeepGoing     bool   // without an agent that is lost, the others go on
	MinAgents     int    // with KeepGoing: the least that must remain
	MaxClockError time.Duration
	// Logf prints what happens to agents.
	Logf func(format string, args ...any)
}

// A delivery is a message of an agent.
type delivery struct {
	agent   string
	message *message
	at      time.Time
}

// listen begins to receive, once.
func (f *Fleet) listen() {
	if f.heard {
		return
	}
	f.heard = true
	f.inbox, f.foreign = make(chan delivery, 4096), map[string]error{}
	f.Bus.Receive(func(agent string, data []byte, at time.Time) {
		m, err := decodeMessage(data)
		if err != nil {
			f.Logf("a message of agent %s was ignored: %v", agent, err)
			if _, ok := errors.AsType[*protocolError](err); ok {
				f.mu.Lock()
				defer f.mu.Unlock()
				f.foreign[agent] = err
			}
			return
		}
		select {
		case f.inbox <- delivery{agent, m, at}:
		default: // it is sent again
		}
	})
}

// lookFor is how long agents have to answer.
const lookFor = 2 * time.Second

// Look asks agents what they are. It returns when all have answered, or after two seconds
// those that did, in the order of the names.
func (f *Fleet) Look(ctx context.Context, names []string) []Info {
	f.listen()
	ping := &message{Kind: kindPing, Run: "look", Session: fmt.Sprint("look-", time.Now().UnixNano()), Number: 1}
	found := map[string]Info{}
	again, late := time.NewTicker(lookFor/4), time.NewTimer(lookFor)
	defer again.Stop()
	defer late.Stop()
	ask := func() {
		for _, name := range names {
			if _, ok := found[name]; !ok {
				_ = f.Bus.Send(name, ping.Encode())
			}
		}
	}
	for ask(); len(found) < len(names); {
		select {
		case d := <-f.inbox:
			if d.message.Kind == kindPong && d.message.Session == ping.Session && d.message.Info != nil {
				found[d.agent] = *d.message.Info
			}
			continue
		case <-again.C:
			ask()
			continue
		case <-late.C:
		case <-ctx.Done():
		}
		break
	}
	var all []Info
	for _, name := range names {
		if info, ok := found[name]; ok {
			info.Name = name
			all = append(all, info)
		}
	}
	return all
}

// Silent returns why agents did not answer Look, of which these are the answers: that one speaks
// another version of the protocol, or their names. It returns nil if all have answered.
func (f *Fleet) Silent(names []string, infos []Info) error {
	missing := silent(names, infos)
	if len(missing) == 0 {
		return nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, name := range missing {
		if err := f.foreign[name]; err != nil {
			return fmt.Errorf("agent %s: %w", name, err)
		}
	}
	return fmt.Errorf("%s did not answer", strings.Join(missing, ", "))
}

// stopWithin is how long agents have to end a run that was stopped: they wait for answers.
const stopWithin = 30 * time.Second

// Stop has agents end the run that they take part in. It returns the names of those that had
// one, and an error if one of them has not ended it after half a minute.
func (f *Fleet) Stop(ctx context.Context, names []string) (stopped []string, err error) {
	busy := func() []Info {
		return slices.DeleteFunc(f.Look(ctx, names), func(i Info) bool { return i.Busy == "" })
	}
	for end := time.Now().Add(stopWithin); ; {
		left := busy()
		if len(left) == 0 || ctx.Err() != nil {
			return stopped, ctx.Err()
		}
		for _, i := range left {
			if !slices.Contains(stopped, i.Name) {
				stopped = append(stopped, i.Name)
			}
			halt := &message{Kind: kindHalt, Run: i.Busy, Session: "stop", Incarnation: i.Incarnation, Reason: "carronade fleet stop"}
			_ = f.Bus.Send(i.Name, halt.Encode()) // a lost message is sent again
		}
		if time.Now().After(end) {
			return stopped, fmt.Errorf("agent %s has not ended run %s yet", left[0].Name, left[0].Busy)
		}
		select {
		case <-time.After(lookFor / 4):
		case <-ctx.Done():
		}
	}
}

// Fire implements run.Fleet.
func (f *Fleet) Fire(ctx context.Context, o *run.Order) (*run.Combined, error) {
	if err := Check(o.Workload, f.Reader); err != nil {
		return nil, err
	}
	infos := f.Look(ctx, f.Agents)
	if err := f.Silent(f.Agents, infos); err != nil {
		return nil, err
	}
	weights := Weights(infos, f.Reader)
	clients, err := Clients(o.Workload, weights)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(plan{Workload: o.Workload.Essence(), RunID: o.RunID, Clients: clients})
	if err != nil {
		return nil, err
	}
	cfg := runConfig{
		Run: report.IDOf(o.RunID), Session: fmt.Sprintf("%x", run.NewID()), Version: f.Version, Layout: measure.Layout,
		Plan: text, Shares: map[string][]byte{}, Agents: f.Agents,
		KeepGoing: f.KeepGoing, MinAgents: f.MinAgents, MaxClockError: f.MaxClockError, Interval: o.Workload.Duration("interval"),
	}
	if f.Recover != "" {
		cfg.Run, cfg.Recover = f.Recover, true
	}
	r := &firing{fleet: f, order: o, frames: map[uint64][]*load.Snapshot{}, infos: map[string]Info{}}
	for i, name := range f.Agents {
		from, to := portion(clients, weights, i)
		reads := name == f.Reader
		if reads {
			from, to = clients, clients
			cfg.Readers = []string{name}
		}
		own, err := json.Marshal(share{From: from, To: to, Reads: reads, Recorded: f.Reader != ""})
		if err != nil {
			return nil, err
		}
		cfg.Shares[name] = own
		r.infos[name] = infos[i]
		r.participants = append(r.participants, &participant{row: report.Agent{Name: name, Version: infos[i].Version, From: from, To: to, Reads: reads}})
	}
	if r.c, err = newCoordinator(cfg); err != nil {
		return nil, err
	}
	return r.run(ctx)
}

func silent(names []string, infos []Info) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool {
		return slices.ContainsFunc(infos, func(i Info) bool { return i.Name == name })
	})
}

// drain drops messages that came before the run.
func (f *Fleet) drain() {
	f.listen()
	for {
		select {
		case <-f.inbox:
		default:
			return
		}
	}
}
