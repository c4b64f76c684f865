package system

import (
	"context"
	"strconv"
	"sync"
	"time"

	"carronade/internal/host"
	"carronade/measure"
)

func itoa(n int) string { return strconv.Itoa(n) }

// Figures reads the system's figures: the resources that its processes use, its
// own metrics, and its pauses. It is a protocol.Figures: it is called
// before a run, once an interval during it and after it, and never on a sending
// thread. A source that does not answer is not an error of the run, but a
// warning (Warnings).
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

// paused passes on a pause of the JVM's collector.
func (s *System) paused(began time.Time, length time.Duration) {
	if s.spec.Happened != nil {
		s.spec.Happened("GC pause", began, length)
	}
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

// Totals are the resources that the system used while it was watched: since it
// was started, or since it was found. The difference of Finish and Begin is
// what it used during the load.
type Totals struct {
	host.Look
	Pauses       int // of the JVM's collector
	PauseTime    time.Duration
	PauseLongest time.Duration // since Begin
}

// Begin reads the system's totals when sending begins. It uses no source over
// the network, and does not change the next result of Figures.
func (s *System) Begin(ctx context.Context) Totals {
	s.reading.Lock()
	if s.gc != nil {
		_, _ = s.gc.Read(ctx)
		s.gc.ResetLongest()
	}
	s.reading.Unlock()
	s.look(false)
	return s.Totals()
}

// Finish reads the system's totals when everything is completed, with the
// kernel's peak of resident memory, which includes the time between two
// readings.
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

// Totals returns the last reading, that of Figures, Begin, Finish or Stop. It
// is zero if nothing could be watched.
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
// bytes of the system in this run: how many bytes it accepts a minute for each
// byte of memory. Higher is better. ok is false if either is unknown.
func Efficiency(accepted uint64, over time.Duration, peak uint64) (ratio float64, ok bool) {
	if over <= 0 || peak == 0 {
		return 0, false
	}
	return float64(accepted) / over.Minutes() / float64(peak), true
}

// PerCore is the number of events for each second of processor time that the
// system used: events per second per core. ok is false if the time is unknown.
func PerCore(events uint64, cpu time.Duration) (rate float64, ok bool) {
	if cpu <= 0 {
		return 0, false
	}
	return float64(events) / cpu.Seconds(), true
}

// Warnings are texts for the user about what was found and what could not be
// read.
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

// Facts are the facts about the system for the report: short names, and values
// that JSON can encode, without secrets. Facts may be called before and after a
// run; afterwards the facts include how the system ended, if it did so by
// itself.
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
	} else if s.spec.Revision != "" {
		m["revision"] = s.spec.Revision
	}
	if s.spec.Branch != "" {
		m["branch"] = s.spec.Branch
	}
	for _, name := range []string{"branch", "revision"} {
		if text, ok := m[name].(string); ok {
			m[name] = s.mask.Text(text)
		}
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
	if s.child != nil && s.container == nil {
		m["pid"] = s.child.Pid()
	}
	if s.spec.PID != 0 {
		m["pid"] = s.spec.PID
	}
	memory, cpus := s.spec.Memory, s.spec.CPUs
	if b := s.container; b != nil {
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
