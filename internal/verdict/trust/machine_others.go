package trust

import (
	"context"
	"math"
	"time"

	"carronade/internal/host"
	"carronade/load"
	"carronade/units"
)

// A MachineLook measures this machine from Look on. It belongs to one goroutine, and is used once.
type MachineLook struct {
	metrics *host.Metrics
	watch   *host.Watch
	start   time.Time
	own     time.Duration
}

// Look begins to measure what else uses this machine.
func Look() *MachineLook {
	return &MachineLook{metrics: host.NewMetrics(), watch: host.NewWatch(), own: host.CPU(), start: time.Now()}
}

// window is what was measured since Look.
func (l *MachineLook) window(ctx context.Context) MachineWindow {
	defer l.metrics.Close()
	w := MachineWindow{Busy: -1}
	figures, err := l.metrics.Figures(ctx)
	w.Length = time.Since(l.start)
	w.Own = (host.CPU() - l.own).Seconds() / w.Length.Seconds()
	if err == nil {
		for _, g := range figures {
			switch g.Name {
			case "CPU":
				w.Busy = g.Value
			case "steal":
				w.Steal = g.Value / 100
			}
		}
	}
	w.Throttled = l.watch.Throttled()
	return w
}

// The bounds of a look before a run.
const (
	leastLook = 100 * time.Millisecond
	lookError = 40 * time.Millisecond // processor time: the kernel counts in steps of 10 ms, and connecting costs others some
)

// Others is how much of this machine's processors others used just before a run, as shares of all of them.
type Others struct {
	Machine    string  `json:"machine,omitempty"` // of a fleet; "": the one that ran the program
	WindowS    float64 `json:"window_s"`          // how long that was measured
	Processors int     `json:"processors"`
	Programs   float64 `json:"programs"` // used by other programs
	Steal      float64 `json:"steal"`    // given by the hypervisor to other machines
	Disturb    bool    `json:"disturb"`  // enough to disturb a run
}

// Others returns what was measured since Look, once that is 100 ms ago; nil if this system does not show it, or the
// context has ended.
func (l *MachineLook) Others(ctx context.Context) *Others {
	wait := time.NewTimer(leastLook - time.Since(l.start))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done():
	}
	w := l.window(ctx)
	if ctx.Err() != nil || w.Busy < 0 {
		return nil
	}
	return w.others(max(load.Processors(), host.ReadState().Processors))
}

// others judges a window by the bounds of doctor, as far as it is long enough for them.
func (w *MachineWindow) others(processors int) *Others {
	o := &Others{WindowS: w.Length.Seconds(), Processors: processors, Steal: w.Steal}
	all := float64(processors)
	o.Programs = min(1, max(0, w.Busy-w.Own)/all)
	unsure := lookError.Seconds() / (w.Length.Seconds() * all)
	o.Disturb = o.Programs >= mostOthers+unsure || o.Steal >= host.LeastStolen+unsure
	return o
}

// Text says who used the processors; "" if that does not disturb.
func (o *Others) Text() string {
	if o == nil || !o.Disturb {
		return ""
	}
	percent := func(share float64) string { return units.FormatPercent(math.Round(share*100) / 100) }
	of := " of the processors"
	if o.Machine != "" {
		of += " of " + o.Machine
	}
	if o.Steal > o.Programs {
		return "the hypervisor gives " + percent(o.Steal) + of + " to other machines"
	}
	return "other programs use " + percent(o.Programs) + of
}

// Worse reports whether others disturb more than by o.
func (o *Others) Worse(than *Others) bool {
	return o.Text() != "" && (than.Text() == "" || max(o.Programs, o.Steal) > max(than.Programs, than.Steal))
}
