package trust

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"carronade/load"
	"carronade/measure"
	"carronade/units"
)

// LeastJudged is the largest percentile that decides whether a run is trusted. Larger
// ones are only marked, unless a limit is on them.
const LeastJudged = 99

// The share of a measurement without a schedule in which the generator may not have
// run: the rate may be too low by that share.
const (
	trustedFrozen = 0.01
	noisyFrozen   = 0.10
)

// How late events may be sent if nothing is answered, so that no time shows the
// lateness.
const (
	trustedUnanswered = time.Millisecond
	noisyUnanswered   = 10 * time.Millisecond
)

// bounds returns the percentiles that the generator moved, or may have moved, too far
// to be trusted.
func bounds(in Input) []measure.Bound {
	r := in.Result
	ps := append(measure.StandardPercentiles(), in.Percentiles...)
	slices.Sort(ps)
	ps = slices.Compact(ps)
	out := []measure.Bound{}
	for _, s := range spans(r) {
		step := ""
		if len(r.Steps) > 1 {
			step = s.Name
		}
		for _, c := range []struct {
			name                   string
			upper, lower, censored *measure.Histogram
		}{
			{"response", s.Response, s.Lower.Response, s.Censored},
			{"service", s.Service, s.Lower.Service, nil},
			{"end_to_end", s.EndToEnd, s.Lower.EndToEnd, s.UnreadAges},
		} {
			n := c.upper.Count() + c.censored.Count()
			if c.upper.Count() == 0 {
				continue
			}
			upper := measure.Percentiles(c.upper, c.censored, ps)
			lower := measure.Percentiles(c.lower, c.censored, ps)
			near := measure.Percentiles(c.lower, c.censored, movedOutwards(ps, c.lower.Count()+c.censored.Count()))
			for i, p := range ps {
				if float64(n)*(100-p) < 99.999 { // 100 - 99.9 is a little less than 0.1
					continue // it would only be the largest value
				}
				b := measure.Bound{Time: c.name, Step: step, P: p, Upper: measure.Micros(upper[i].D), Lower: measure.Micros(lower[i].D)}
				least := lower[i].D
				if measure.LevelOf(least, near[i].D) != measure.Trusted { // there is a step
					least = min(near[i].D, upper[i].D)
				}
				if b.Level = measure.LevelOf(least, upper[i].D); b.Level != measure.Trusted {
					out = append(out, b)
				}
			}
		}
	}
	return out
}

// rankTolerance is the share of the values beyond a percentile by which its rank may be
// moved.
const rankTolerance = 0.02

// movedOutwards returns percentiles of n values, each moved outwards by 2 % of the
// values beyond it, in complete values. If the times form a step, such as one in ten
// that a stalled system delayed, the percentile at the step falls on either side of it
// because of a few events: the distribution causes that, not the generator. Where there is
// no step, the percentile itself decides.
func movedOutwards(ps []float64, n uint64) []float64 {
	out := slices.Clone(ps)
	if n == 0 {
		return out
	}
	for i, p := range ps {
		out[i] = p + 100*math.Floor(float64(n)*(100-p)/100*rankTolerance)/float64(n)
	}
	return out
}

// A statement is a sentence about some bounds.
type statement struct {
	level measure.Level
	text  string
}

// statements describes bounds in words: for each time and step the percentile with the
// worst level that decides, and of these the one with the widest bound. Other
// percentiles are marked only in the report's table.
func statements(bounds []measure.Bound, in Input, more string) []statement {
	r := in.Result
	var out []statement
	explained := false
	for i := 0; i < len(bounds); {
		j := i
		var worst *measure.Bound
		for ; j < len(bounds) && bounds[j].Time == bounds[i].Time && bounds[j].Step == bounds[i].Step; j++ {
			b := &bounds[j]
			if b.P > LeastJudged && !slices.Contains(in.Limited, b.P) {
				continue
			}
			if worst == nil || worst.Level != b.Level && b.Level == measure.NotTrusted ||
				worst.Level == b.Level && b.Upper-b.Lower >= worst.Upper-worst.Lower {
				worst = b
			}
		}
		i = j
		if worst == nil {
			continue
		}
		text := fmt.Sprintf("%s %s %s%s%s", strings.ReplaceAll(worst.Time, "_", " "), measure.PercentileName(worst.P),
			units.FormatDurations(micros(worst.Lower), micros(worst.Upper)), inStep(worst.Step), Late)
		if worst.Level == measure.NotTrusted && !explained {
			explained = true // the explanation is the same for all
			text += why(r) + "; " + remedy(r, more)
		}
		out = append(out, statement{worst.Level, text})
	}
	return out
}

// Late is in each sentence about a time that the generator may have lengthened.
const Late = ", since the generator was late"

func micros(us float64) time.Duration { return time.Duration(us * 1e3) }

func inStep(step string) string {
	if step == "" {
		return ""
	}
	return " in the step of " + step
}

// why returns what the generator was observed to do wrong.
func why(r *load.Result) string {
	if len(r.Freezes.Longest) == 0 {
		return ""
	}
	f := r.Freezes.Longest[0]
	was := "was delayed" // by its own work, or because no processor was free
	if f.Who == "process" {
		was = "did not run"
	}
	text := fmt.Sprintf(": its %s %s for %s at %s", f.Who, was, units.FormatDuration(f.Length), units.FormatDuration(f.At))
	if f.Cause != "" {
		text += " (" + f.Cause + ")"
	}
	return text
}

func remedy(r *load.Result, more string) string {
	if r.Mode == load.OpenLoop {
		return orList("lower the rate", more, "use a faster or quieter machine")
	}
	return "use a faster or quieter machine"
}

// unanswered checks the send delay of a run in which nothing is acknowledged, so that
// lateness shows in no other time. Of several steps it reports the worst.
func unanswered(r *load.Result, more string) (measure.Level, string) {
	level, text, worst := measure.Trusted, "", trustedUnanswered
	if !r.Unanswered {
		return level, text
	}
	for _, s := range spans(r) {
		d := s.SendDelay.Percentile(99)
		if s.SendDelay.Count() == 0 || d <= worst {
			continue
		}
		if worst, level = d, measure.NotTrusted; d <= noisyUnanswered {
			level = measure.Noisy
		}
		step := ""
		if len(r.Steps) > 1 {
			step = s.Name
		}
		text = fmt.Sprintf("send delay p99 %s%s%s; %s", units.FormatDuration(d), inStep(step), why(r), remedy(r, more))
	}
	return level, text
}

// frozen checks the times in which the generator did not run, for runs without a
// schedule: the rate is too low by their share.
func frozen(r *load.Result) (measure.Level, string) {
	length := r.Measurement.Length()
	if r.Mode == load.OpenLoop || length <= 0 {
		return measure.Trusted, ""
	}
	share := r.Freezes.Total.Seconds() / length.Seconds()
	if share <= trustedFrozen {
		return measure.Trusted, ""
	}
	text := fmt.Sprintf("the generator did not run for %s of the measurement, so the rate may be too low by as much%s",
		units.FormatPercent(min(share, 1)), why(r))
	if share <= noisyFrozen {
		return measure.Noisy, text
	}
	return measure.NotTrusted, text + "; " + remedy(r, "")
}

// paused checks the pauses of the garbage collector, for runs without a schedule. The
// number of pauses times the longest is an upper bound of their total.
func paused(r *load.Result) (measure.Level, string) {
	u, length := r.Usage, r.Measurement.Length()
	if r.Mode == load.OpenLoop || length <= 0 {
		return measure.Trusted, ""
	}
	share := float64(u.GCPauses) * u.GCPauseMax.Seconds() / length.Seconds()
	if u.GCPauseMax <= trustedUnanswered || share <= trustedFrozen {
		return measure.Trusted, ""
	}
	who := "the generator"
	if r.Mode == load.Consuming {
		who = "the clients"
	}
	text := fmt.Sprintf("the garbage collector stopped %s for up to %s, %d times", who, units.FormatDuration(u.GCPauseMax), u.GCPauses)
	if share <= noisyFrozen {
		return measure.Noisy, text
	}
	return measure.NotTrusted, text + "; give it more memory (GOGC=400) or a smaller workload"
}
