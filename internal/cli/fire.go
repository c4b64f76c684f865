package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"carronade/internal/host"
	"carronade/internal/layout"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/verdict/fault"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

// runTasks runs all tasks, one after the other, and then again the repetitions that were not
// trusted. It delivers each report at once, since a later task may fail.
func (s *session) runTasks(ctx context.Context, o outputs) error {
	var outcome error
	var faulty []*report.Document       // of the runs that count
	for i := 0; i < len(o.tasks); i++ { //nolint:intrange // replacements are appended
		d, err := s.execute(ctx, o, i)
		if err != nil {
			return worst(outcome, err)
		}
		replaced := s.replace(&o, i, d)
		if err = s.deliver(d, o, i); !replaced || exitCodeOf(err) != host.ExitUntrusted {
			outcome = worst(outcome, err)
		}
		if !replaced {
			faulty = append(faulty, &report.Document{Faults: d.Faults})
		}
		if ctx.Err() != nil {
			outcome = worst(outcome, err) // no run replaces it any more
			break
		}
	}
	if !o.json {
		if err := report.FaultSummary(s.out, s.style(), faulty); err != nil {
			outcome = worst(outcome, fmt.Errorf("writing the scores of faults: %w", err))
		}
	}
	return outcome
}

// execute runs a task, shows its progress and stores its report.
func (s *session) execute(ctx context.Context, o outputs, i int) (d *report.Document, err error) {
	var watcher *live.Watcher // nil is quiet
	if !o.quiet {
		watcher = live.NewWatcher(s.Err, terminal(s.Err))
	}
	if watcher != nil { // steps of a scenario that run next to another are quiet
		s.restore.Store(watcher)
	}
	defer func() {
		watcher.Close()
		s.restore.CompareAndSwap(watcher, nil)
	}()
	k := &o.tasks[i]
	w := k.w
	if text := o.which(i); text != "" {
		watcher.Message(text)
	}
	if w.Has("exec") && !o.allowExec {
		return nil, &protocol.Error{Err: workload.ErrExec, Hint: "look at the commands, and add --allow-exec to the command line"}
	}
	if err := o.fleet.fit(w); err != nil { // trials of a search are made one by one
		return nil, err
	}
	k.fits = true
	room := s.room()
	free := func() {}
	if o.fleet == nil { // else each agent has its own
		if room, free, err = s.take(w); err != nil {
			return nil, err
		}
	}
	defer func() { free() }()
	id := run.NewID()
	o.exporter.Begin(exportedRun(w, id, k.i))
	defer o.exporter.End()
	endMarks := func() {}
	defer func() { endMarks() }()
	shown := o.viewers.begin(w, id, o.which(i), k.trial)
	defer func() { shown.End(doneOf(d, err)) }()
	var said atomic.Value // the last remark
	said.Store("")
	var others run.Fleet // not a nil pointer in an interface
	if o.fleet != nil {
		others = &o.fleet.Fleet
	}
	return run.Execute(ctx, run.Job{
		Fleet: others, Workload: w, Room: room, Others: s.Others, Version: version(), RunID: id,
		Repetition: k.i + 1, Repetitions: max(k.of, 1), Replaces: k.replaces,
		HDR: k.hdr, Trace: k.trace,
		Note: o.note, Attachments: k.attached,
		Store: o.keep.store, Secrets: o.keep.secrets(),
		Permit: o.permit,
		Disturbed: func(agent, text string) {
			if o.warns {
				s.warnDisturbed(agent, text, watcher)
			}
		},
		Facts: o.observer.Found, CameBack: o.observer.RoundTrip, Backlog: o.observer.Backlog, Outcomes: o.observer.Completed, Arrivals: o.observer.Arrived, Rows: o.observer.Rows,
		Measured: func(ctx context.Context, d *report.Document) {
			free()
			d.Calibration = s.calibrationFor(w, bytesPerEvent(d))
			if o.beside {
				s.addGenerates(ctx, w, d)
			}
			if s.Measured != nil {
				s.Measured(d)
			}
		},
		Stored: func(_ *report.Document, err error) { k.kept = err },
		Opened: func() {
			if o.observer.Opened != nil {
				o.observer.Opened()
			} else if w.OpenEnded() {
				s.note("no limit was given: the run continues until Ctrl-C, which stops, drains and reports")
			}
		},
		Watch: func(snap load.Snapshot) {
			watcher.Show(snap)
			o.exporter.Show(snap)
			shown.Show(snap)
			if o.observer.Interval != nil {
				o.observer.Interval(snap)
			}
		},
		Figures: shown.Figures,
		Marks: func(m *run.Marker) {
			endMarks = s.takeMarks(id, m, func(format string, args ...any) { watcher.Message(fmt.Sprintf(format, args...)) })
			ends := []func(){endMarks, o.viewers.takeMarks(report.IDOf(id), m)}
			if o.marker != nil {
				ends = append(ends, o.marker(m))
			}
			endMarks = func() {
				for _, end := range ends {
					end()
				}
			}
		},
		Marked: func(m fault.Mark) {
			watcher.Message(markText(&m))
			shown.MarkFault(units.Seconds(m.AtS), m.Kind, m.Name)
		},
		Logf: func(format string, args ...any) {
			text := fmt.Sprintf(format, args...)
			if said.Swap(text) == text {
				return // what is tried again fails for the same reason
			}
			watcher.Message(s.wrapped("", text))
			shown.Mark(text)
		},
		Output:      func(from, line string) { s.printed(watcher, from+" | "+layout.Clean(line)) },
		Started:     s.ends.slot(),
		Host:        host.Describe(),
		Calibration: s.calibrationFor(w, 0),
	})
}

// warnDisturbed says once that others use this machine, or that of an agent: several runs of a command would only
// repeat it.
func (s *session) warnDisturbed(agent, text string, w *live.Watcher) {
	if _, said := s.disturbed.LoadOrStore(agent, true); said {
		return
	}
	where := ""
	if agent != "" {
		where = "agent " + agent + ": "
	}
	text = where + text + ": results may not be trusted (carronade doctor)"
	if w == nil {
		s.warn(text)
		return
	}
	w.Message(s.wrapped("warning: ", text))
}

// printed shows a line of the system under test, also if everything else is quiet: it was
// requested.
func (s *session) printed(w *live.Watcher, line string) {
	if w != nil {
		w.Message(line)
		return
	}
	s.errLines.Lock()
	defer s.errLines.Unlock()
	fmt.Fprintln(s.Err, line)
}

// which names the i-th task, if there are several.
func (o *outputs) which(i int) string {
	k := &o.tasks[i]
	var parts []string
	if k.cell != "" {
		what := "run"
		if k.search != nil {
			what = "search"
		}
		parts = append(parts, fmt.Sprintf("%s %d of %d: %s", what, i+1, len(o.tasks), k.cell))
	} else if first := o.tasks[0].w; slices.ContainsFunc(o.tasks, func(k task) bool { return k.w != first }) {
		parts = append(parts, fmt.Sprintf("run %d of %d: %s %s", i+1, len(o.tasks), k.w.Op, k.w.Target()))
	}
	if k.of > 1 {
		parts = append(parts, fmt.Sprintf("repetition %d of %d", k.i+1, k.of))
	}
	if k.replaces != "" {
		parts = append(parts, "in place of "+k.replaces)
	}
	return strings.Join(parts, ", ")
}

// ends holds, for each run, how to stop what it has started. Safe for concurrent use.
type ends struct {
	mu sync.Mutex
	of map[*func()]struct{}
}

// slot reserves a place for one run. The returned function sets how to stop what the run has
// started; nil when nothing is left to stop.
func (e *ends) slot() func(end func()) {
	var kept *func()
	return func(end func()) {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.of, kept)
		if end == nil {
			return
		}
		if e.of == nil {
			e.of = map[*func()]struct{}{}
		}
		kept = &end
		e.of[kept] = struct{}{}
	}
}

// stopAll stops everything that runs have started, and waits for it.
func (e *ends) stopAll() {
	e.mu.Lock()
	of := maps.Clone(e.of)
	e.mu.Unlock()
	var ending sync.WaitGroup
	for end := range of {
		ending.Go(*end)
	}
	ending.Wait()
}
