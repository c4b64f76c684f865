package report

import (
	"time"

	"carronade/load"
	"carronade/measure"
)

// A Series makes rows of the series of intervals. The zero value is for a closed loop.
type Series struct {
	Mode        load.Mode
	Unanswered  bool      // nothing is acknowledged: rates are of sent events
	Percentiles []float64 // beyond the standard ones
}

// Interval makes a row, with encoded histograms. It is safe for concurrent use.
func (s *Series) Interval(iv *measure.Interval) Interval {
	n := iv.Acked
	switch s.rateOf() {
	case RateConsumed:
		n = iv.Consumed
	case RateSent:
		n = iv.Sent
	}
	out := Interval{
		Phase: iv.Phase, StartS: iv.Start.Seconds(), EndS: iv.End.Seconds(), Counts: iv.Counts, Statuses: iv.Statuses, Classes: iv.Classes,
		EventsPerS: perSecond(n, iv.Length()),
		InFlight:   iv.InFlight, LagEvents: iv.LagEvents, LagLogs: iv.LagLogs,
		Response:  s.summary(s.scheduled() && s.answered(), iv.Response, iv.Censored),
		Service:   s.summary(s.answered(), iv.Service, nil),
		SendDelay: s.summary(s.scheduled(), iv.SendDelay, nil),
		EndToEnd:  s.summary(false, iv.EndToEnd, nil),
		Generator: usage(iv.Generator),
	}
	set := iv.Set // a copy, since its fields are taken by address
	set.Each(func(name string, h **measure.Histogram) {
		if (*h).Count() == 0 {
			return
		}
		if out.Histograms == nil {
			out.Histograms = make(map[string]string)
		}
		out.Histograms[name] = (*h).EncodeHDR()
	})
	return out
}

// rateOf says what the rates of a run count: sent events if nothing is acknowledged (acks=0,
// UDP).
func (s *Series) rateOf() string {
	switch {
	case s.Mode == load.Consuming:
		return RateConsumed
	case s.Unanswered:
		return RateSent
	}
	return RateAcked
}

func (s *Series) answered() bool  { return s.rateOf() == RateAcked }
func (s *Series) scheduled() bool { return s.Mode == load.OpenLoop }

// summary returns the summary of a time that exists in this run, even if nothing was counted
// for it; otherwise nil. The mode decides which times exist, not what was measured: a run
// without any answer still has response times, unknown ones.
func (s *Series) summary(exists bool, h, censored *measure.Histogram) *measure.Summary {
	if h == nil && exists {
		h = measure.NewHistogram()
	}
	return measure.Summarize(h, censored, s.Percentiles)
}

func usage(u measure.Usage) Usage {
	return Usage{
		CPUS: u.CPU.Seconds(), RSSBytes: u.RSS, GCPauses: u.GCPauses,
		GCPauseMaxUS: float64(u.GCPauseMax) / float64(time.Microsecond), GCCPUS: u.GCCPU.Seconds(),
	}
}
