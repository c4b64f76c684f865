package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/live"
	"carronade/internal/report"
	"carronade/internal/secret"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// viewers get the frames of the runs of a command: a page in the user's browser, or the process that
// started this one. A nil viewers shows nothing.
type viewers struct {
	page  *live.Page
	hub   *live.Hub
	pipe  *live.FrameWriter
	shown atomic.Bool // a run began
}

// openViewers serves the page if --web is given, and writes frames to the file descriptor that
// the environment names; nil if neither is wanted.
func (s *session) openViewers(t *cmdutil.Settings) (*viewers, error) {
	pipe, err := s.framePipe()
	if err != nil {
		return nil, err
	}
	if err := checkLinger(t, "web-linger", "web", "--web"); err != nil {
		return nil, err
	}
	addr := t.Last("web")
	if addr == "" && pipe == nil {
		return nil, nil
	}
	v := &viewers{pipe: pipe}
	if addr != "" {
		v.hub = live.NewHub()
		if v.page, err = live.OpenPage(addr, v.hub); err != nil {
			return nil, err
		}
		s.note("live page at %s", v.page.URL())
		if v.page.IsPublic() {
			s.warn("other machines can reach the live page, and its token is not encrypted on the network; leave out the address to serve only this machine")
		}
	}
	return v, nil
}

// framePipe returns the writer to the file descriptor that the environment names, nil without
// one. It is the same for everything that a session runs. Processes that this one starts get
// neither the descriptor nor the variable.
func (s *session) framePipe() (*live.FrameWriter, error) {
	s.framing.Lock()
	defer s.framing.Unlock()
	descriptor := os.Getenv(live.FramesVariable)
	if s.frames != nil || descriptor == "" {
		return s.frames, nil
	}
	f, err := inherited(descriptor)
	if err != nil {
		return nil, &protocol.Error{Err: fmt.Errorf("%s=%s: %w", live.FramesVariable, descriptor, err), Hint: "it names an open file descriptor of 3 or more, to which frames are written; unset it otherwise"}
	}
	_ = os.Unsetenv(live.FramesVariable) // it was set, so its name is valid
	s.frames = live.NewFrameWriter(f)
	return s.frames, nil
}

func inherited(descriptor string) (*os.File, error) {
	n, err := strconv.ParseUint(descriptor, 10, 16)
	if err != nil || n < 3 {
		return nil, errors.New("not a file descriptor")
	}
	if err := host.KeepFromChildren(uintptr(n)); err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(n), live.FramesVariable), nil
}

// lingers is the page after the end of the runs.
func (v *viewers) lingers(t *cmdutil.Settings) (l lingering) {
	if v != nil && v.page != nil && v.shown.Load() {
		l = lingering{what: "the live page stays at " + v.page.URL(), text: t.Last("web-linger")}
	}
	return l
}

// close ends the page.
func (v *viewers) close() {
	if v != nil {
		v.page.Close()
	}
}

// closeFrames writes the frames that wait, at the end of the program.
func (s *session) closeFrames() {
	s.framing.Lock()
	defer s.framing.Unlock()
	if err := s.frames.Close(); err != nil {
		s.warn(fmt.Sprintf("the reader of %s did not get all frames: %v", live.FramesVariable, err))
	}
}

// begin shows another run. title says which of several it is, and trial which of a search; nil: none.
func (v *viewers) begin(w *workload.Workload, id uint64, title string, trial *trialView) *live.Recorder {
	if v == nil {
		return nil
	}
	v.shown.Store(true)
	var mask secret.Mask
	times := "service"
	scheduled := w.Has("rate") || w.Has("shape")
	switch {
	case w.Unacknowledged():
		times = "end_to_end"
	case scheduled:
		times = "response"
	}
	about := live.Run{
		Target: mask.Text(w.Target()), Op: w.Op, Title: title, Labels: w.Labels(), Version: version(),
		StartedAt: time.Now().UTC().Format(time.RFC3339), Interval: live.Seconds(max(w.Duration("interval"), time.Second)),
		Unanswered: w.Unacknowledged(), Schedule: scheduled, Reading: w.Op == workload.Consume, Processors: load.Processors(),
	}
	limits := w.Limits()
	if trial != nil {
		limits, about.Search = trial.limits, &trial.Search // a search may have limits that no workload has
	}
	for _, l := range limits {
		about.Limits = append(about.Limits, report.LineOf(&l, times))
	}
	r := live.NewRecorder(report.IDOf(id), about, func(e live.Event) {
		if v.hub != nil {
			_ = v.hub.Take(e) // it is an event of this run
		}
		v.pipe.Write(e)
	})
	r.Plan(momentsOf(w, trial)...)
	return r
}

// A trialView is what viewers of a trial see of its search.
type trialView struct {
	live.Search
	limits []workload.Limit
}

// momentsOf are the moments of a run that are known before: the start of a trial, and of the steps of
// a shape.
func momentsOf(w *workload.Workload, trial *trialView) (out []live.Mark) {
	if trial != nil {
		out = append(out, live.Mark{Text: fmt.Sprintf("trial %d, %s: %s", trial.Trial, trial.Role, trial.Load)})
	}
	p, err := w.Plan()
	if err != nil || len(p.Steps) < 2 { // the run itself reports the error
		return out
	}
	for _, s := range p.Steps {
		out = append(out, live.Mark{At: live.Seconds(p.WarmupTime + s.Start), Text: s.Name})
	}
	return out
}

// doneOf describes the end of a run.
func doneOf(d *report.Document, err error) live.Done {
	if d == nil {
		out := live.Done{Exit: exitCodeOf(err)}
		if err != nil {
			out.Error = err.Error()
		}
		return out
	}
	out := live.Done{
		Report: d.ID, Headline: d.Headline(), Band: d.Band(), Trust: string(d.TrustLevel()), Exit: d.ExitCode(), Totals: measure.Signed(d.Totals.Counts),
	}
	for i := range d.Phases {
		if p := &d.Phases[i]; p.Name == measure.WarmUp {
			warm := measure.Signed(p.Totals.Counts)
			out.Warmup = &warm
		}
	}
	for _, v := range d.Verdicts() {
		for _, text := range v.Sentences() {
			out.Verdicts = append(out.Verdicts, live.Verdict{Mark: v.Mark.Name(), Label: v.Label, Text: text})
		}
	}
	return out
}
