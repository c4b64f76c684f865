package sut

import (
	"context"
	"strconv"
	"sync"
	"time"

	"carronade/internal/system"
	"carronade/measure"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Figures reads the system's figures: what its processes hold and consume, what it
// reports of itself, and its pauses. It is a target.FigureSource's: asked before, once
// an interval during, and after a run, and never on a firing thread. A source
// that does not answer is no error of the run; Warnings tells of it.
func (s *System) Figures(ctx context.Context) ([]measure.Figure, error) {
	s.reading.Lock()
	defer s.reading.Unlock()
	var vars, metrics []measure.Figure
	var both sync.WaitGroup
	if s.vars != nil {
		both.Go(func() { vars, _ = s.vars.Figures(ctx) })
	}
	if s.metrics != nil {
		both.Go(func() { metrics, _ = s.metrics.Figures(ctx) })
	}
	out := s.consumption()
	if s.gc != nil {
		pauses, _ := s.gc.Figures(ctx)
		out = append(out, pauses...)
	}
	both.Wait()
	return append(append(out, vars...), metrics...), ctx.Err()
}

func (s *System) consumption() []measure.Figure {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil || !s.lookNow().alive {
		return nil
	}
	out := s.latest.Figures(&s.before)
	s.before = s.latest
	return out
}

// Totals are what the system consumed as far as it was watched: since it was
// started, or since it was found. A run that wants what was consumed while it
// fired takes the difference of Begin and Finish.
type Totals struct {
	system.Look
	Pauses       int // of the JVM's collector
	PauseTime    time.Duration
	PauseLongest time.Duration // since Begin
}

// Begin looks at the system when firing begins. It asks no source over the
// network, and what Tell tells next is not changed by it.
func (s *System) Begin(ctx context.Context) Totals {
	s.reading.Lock()
	if s.gc != nil {
		_, _ = s.gc.Read(ctx)
		s.gc.Begin()
	}
	s.reading.Unlock()
	s.look(false)
	return s.Totals()
}

// Finish looks at the system when everything is completed, and asks the kernel
// for the most memory that was resident between any two looks.
func (s *System) Finish(ctx context.Context) Totals {
	s.reading.Lock()
	if s.gc != nil {
		_, _ = s.gc.Read(ctx)
	}
	s.reading.Unlock()
	s.look(true)
	return s.Totals()
}

func (s *System) look(last bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tree == nil {
		return
	}
	if last {
		if l := s.tree.Final(); l.Processes > 0 {
			s.latest = l
			return
		}
	}
	s.lookNow()
}

// Totals tells what the last look found, Tell's, Finish's or Stop's. The zero
// Totals: nothing could be watched.
func (s *System) Totals() Totals {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	t := Totals{Look: s.latest}
	if s.gc != nil {
		t.Pauses, t.PauseTime, t.PauseLongest = s.gc.Totals()
	}
	return t
}

// Efficiency is the accepted uncompressed bytes per minute over the peak resident
// bytes of the system in this run: how much goes through each byte of memory.
// Higher is better. ok is false when either is not known.
func Efficiency(accepted uint64, over time.Duration, peak uint64) (ratio float64, ok bool) {
	if over <= 0 || peak == 0 {
		return 0, false
	}
	return float64(accepted) / over.Minutes() / float64(peak), true
}

// PerCore is the events for each second of processor time that the system
// consumed: events per second per core. ok is false when the time is not known.
func PerCore(events uint64, cpu time.Duration) (rate float64, ok bool) {
	if cpu <= 0 {
		return 0, false
	}
	return float64(events) / cpu.Seconds(), true
}

// Warnings are words for people about what was found and what could not be.
func (s *System) Warnings() []string {
	s.reading.Lock()
	defer s.reading.Unlock()
	s.mu.Lock()
	out := append([]string(nil), s.warnings...)
	s.mu.Unlock()
	if s.vars != nil {
		out = append(out, s.vars.Warnings()...)
	}
	if s.metrics != nil {
		out = append(out, s.metrics.Warnings()...)
	}
	if s.gc != nil {
		out = append(out, s.gc.Warnings()...)
	}
	return out
}

// Facts are what is known of the system, for the report: short names and values
// that JSON can hold, no secret among them. They may be asked before and after a
// run; after it they hold how it ended, if it did by itself.
//
//	command, process, pid, container, image, image_id, engine
//	flags                  NAME to value
//	environment            names alone
//	memory_limit_bytes, cpu_limit
//	branch, revision, revision_date, unstaged_changes
//	build_cached, build_s
//	ready_after_s
//	peak_rss_bytes, cpu_s
//	exit, last_lines       of a system that died
func (s *System) Facts() map[string]any {
	m := make(map[string]any)
	if s.git != nil {
		m = s.git.Map()
	}
	if s.shown != "" {
		m["command"] = s.shown
	}
	if len(s.flags) > 0 {
		flags := make(map[string]any, len(s.flags))
		for name, value := range s.flags {
			flags[name] = s.mask.Text(value)
		}
		m["flags"] = flags
	}
	if names := s.envNames(); len(names) > 0 {
		m["environment"] = names
	}
	if s.child != nil && s.box == nil {
		m["pid"] = s.child.Pid()
	}
	if s.spec.PID != 0 {
		m["pid"] = s.spec.PID
	}
	memory, cpus := s.spec.Memory, s.spec.CPUs
	if b := s.box; b != nil {
		facts := b.facts()
		m["engine"], m["image"], m["image_id"] = b.kind(), facts.Config.Image, facts.Image
		if s.spec.Container != "" {
			m["container"] = s.spec.Container
			memory, cpus = facts.HostConfig.Memory, float64(facts.HostConfig.NanoCpus)/1e9
		}
	}
	if memory > 0 {
		m["memory_limit_bytes"] = memory
	}
	if cpus > 0 {
		m["cpu_limit"] = cpus
	}
	if b := s.spec.Build; b != nil {
		m["build_cached"], m["build_s"] = b.Cached, b.Took.Seconds()
	}
	if s.readyAfter > 0 {
		m["ready_after_s"] = s.readyAfter.Seconds()
	}
	s.mu.Lock()
	if s.spec.PID != 0 && s.process != "" {
		m["process"] = s.process
	}
	if s.latest.Peak > 0 {
		m["peak_rss_bytes"], m["cpu_s"] = int64(s.latest.Peak), s.latest.CPU.Seconds()
	}
	exit := s.exit
	s.mu.Unlock()
	select {
	case <-s.died:
		m["exit"] = exit.Status
		if lines := s.LastLines(); len(lines) > 0 {
			all := make([]any, len(lines))
			for i, l := range lines {
				all[i] = l
			}
			m["last_lines"] = all
		}
	default:
	}
	return m
}

func (s *System) envNames() []any {
	var out []any
	for _, e := range s.spec.Env {
		for i := range len(e) {
			if e[i] == '=' {
				out = append(out, e[:i])
				break
			}
		}
	}
	return out
}
