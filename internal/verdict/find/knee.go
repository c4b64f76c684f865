package find

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"carronade/internal/verdict/stats"
	"carronade/units"
)

// OverConcurrency searches for the smallest number of requests in flight that is enough.
const OverConcurrency = "concurrency"

// The search over the number of requests in flight.
const (
	enoughShare  = 0.95  // of the best throughput
	leastGain    = 1.05  // of twice as many in flight, or more are not tried
	kneeWidth    = 1.1   // between the number that is enough and the one that is not
	kneeTrials   = 3     // of each number that decides
	mostInFlight = 16384 // requests
	fits         = 0.05  // residual of a curve that is shown
	kneeLongest  = 10 * time.Second
)

// A Knee is the answer of a search over the number of requests in flight.
type Knee struct {
	// Enough is the smallest number of requests in flight that reaches the share of the best
	// throughput, and Below the largest tried below it, which does not. 0: none.
	Enough           int     `json:"enough"`
	EnoughThroughput float64 `json:"enough_throughput"` // events a second, the mean of its trials
	Below            int     `json:"below"`
	BelowThroughput  float64 `json:"below_throughput"`
	Best             int     `json:"best"` // with the highest throughput
	BestThroughput   float64 `json:"best_throughput"`
	Share            float64 `json:"share"` // of the best throughput that is enough
	// Scalability is the law of scalability of the trials, nil if it does not fit them.
	Scalability *stats.Scalability `json:"scalability,omitempty"`
}

// level is what is known of a number of requests in flight.
type level struct {
	n          int
	throughput []float64 // of its trials
}

func (l *level) mean() (m float64) {
	for _, x := range l.throughput {
		m += x / float64(len(l.throughput))
	}
	return m
}

// throughputOf is the mean throughput of a number, 0 if it has none.
func throughputOf(levels []level, n int) float64 {
	for i := range levels {
		if levels[i].n == n {
			return levels[i].mean()
		}
	}
	return 0
}

// overConcurrency searches for the knee. The number grows by powers of two until that gains
// little, is bisected, and the numbers that decide are tried again.
func (s *search) overConcurrency() error {
	var levels []level // by number
	defer func() { s.answer.Knee = knee(levels) }()
	doubt, stopped := "", 0 // the number that ended the doubling
	inFlight := func(role Role, n int) (float64, error) {
		measure := min(s.Budget/40, kneeLongest)
		o, err := s.try(Trial{Role: role, Concurrency: n, Settle: measure / 5, Measure: measure, Slot: max(measure/100, coarse)})
		if err != nil {
			return 0, err
		}
		if o.Doubt != "" || o.Generator != "" {
			doubt = cmp.Or(o.Doubt, o.Generator)
		}
		if o.Broken != "" || o.Generator != "" {
			// A throughput with failures does not belong to the system.
			s.answer.Trials[len(s.answer.Trials)-1].Verdict = &Verdict{Result: Fail, Why: o.Broken + o.Generator}
			return 0, nil
		}
		if o.Achieved <= 0 {
			return 0, nil
		}
		i, found := slices.BinarySearchFunc(levels, n, func(l level, n int) int { return l.n - n })
		if !found {
			levels = slices.Insert(levels, i, level{n: n})
		}
		levels[i].throughput = append(levels[i].throughput, o.Achieved)
		return o.Achieved, nil
	}
	// double tries more and more in flight, from n. A trial that ends this is repeated: one that
	// went wrong would end the search far too low.
	double := func(n int) error {
		for ; ; n *= 2 {
			last := throughputOf(levels, n/2)
			x, err := inFlight(Search, n)
			if stopped = n; err == nil && x < leastGain*last {
				var again float64
				again, err = inFlight(Search, n)
				x = max(x, again)
			}
			switch {
			case err != nil:
				return err
			case x <= 0 && n == 1 && doubt != "":
				return s.end(AtLeast, "the generator may have been the limit: %s", doubt)
			case x <= 0 && n == 1:
				return s.end(None, "%s", s.nothing())
			case x < leastGain*last:
				return nil
			case n >= mostInFlight:
				return s.end(NoTop, "the throughput still grows at %s in flight", units.Plural(n, "request"))
			}
		}
	}
	if err := double(1); err != nil {
		return err
	}
	for {
		k := knee(levels)
		role, n := Confirm, 0
		if k.Below > 0 && k.Enough-k.Below > 1 && float64(k.Enough) > kneeWidth*float64(k.Below) {
			role, n = Search, min(max(int(math.Round(math.Sqrt(float64(k.Below)*float64(k.Enough)))), k.Below+1), k.Enough-1)
		}
		for i := range levels {
			if l := &levels[i]; n == 0 && len(l.throughput) < kneeTrials && (l.n == k.Enough || l.n == k.Below || l.n == k.Best) {
				n = l.n
			}
		}
		if n == 0 {
			break
		}
		if _, err := inFlight(role, n); err != nil {
			return err
		}
		// Trials of the largest number that disagree may show that the throughput grows there.
		if top := &levels[len(levels)-1]; top.n == stopped && top.n < mostInFlight && top.mean() >= leastGain*throughputOf(levels, top.n/2) {
			if err := double(2 * top.n); err != nil {
				return err
			}
		}
	}
	if doubt != "" {
		return s.end(AtLeast, "the generator may have been the limit: %s", doubt)
	}
	return s.end(Found, "more in flight gains less than %s", units.FormatPercent(leastGain-1))
}

// nothing says why one request in flight has no throughput.
func (s *search) nothing() string {
	if v := s.answer.Trials[len(s.answer.Trials)-1].Verdict; v != nil {
		return v.Why
	}
	return "nothing was answered"
}

// knee is what levels, by number, say of the number that is enough.
func knee(levels []level) *Knee {
	k := &Knee{Share: enoughShare}
	var n, x []float64
	for i := range levels {
		mean := levels[i].mean()
		n, x = append(n, float64(levels[i].n)), append(x, mean)
		if mean > k.BestThroughput {
			k.Best, k.BestThroughput = levels[i].n, mean
		}
	}
	for i := range levels {
		mean := levels[i].mean()
		if mean >= enoughShare*k.BestThroughput {
			k.Enough, k.EnoughThroughput = levels[i].n, mean
			break
		}
		k.Below, k.BelowThroughput = levels[i].n, mean
	}
	if u, ok := stats.FitScalability(n, x); ok && u.Residual < fits {
		k.Scalability = &u
	}
	return k
}

// headline is the answer of a search over the number of requests in flight.
func (k *Knee) headline(e Ending, why, trials string) string {
	if k.Enough == 0 && e == Stopped {
		return fmt.Sprintf("not known which number of requests in flight is enough: %s; %s", why, trials)
	}
	if k.Enough == 0 {
		return fmt.Sprintf("no number of requests in flight is enough: %s; %s", why, trials)
	}
	text := fmt.Sprintf("%s in flight: %s, %s of the best, %s with %d", units.Plural(k.Enough, "request"),
		units.FormatRate(k.EnoughThroughput), units.FormatPercent(k.EnoughThroughput/k.BestThroughput), units.FormatRate(k.BestThroughput), k.Best)
	if k.Below > 0 {
		text += fmt.Sprintf("; %d: %s", k.Below, units.FormatPercent(k.BelowThroughput/k.BestThroughput))
	}
	switch e {
	case Found:
		return fmt.Sprintf("enough: %s; %s", text, trials)
	case AtLeast:
		return fmt.Sprintf("at least %s; %s; %s", text, why, trials)
	}
	return fmt.Sprintf("not confirmed: %s; %s; %s", text, why, trials)
}

// scalability is the law of scalability as text.
func scalability(u *stats.Scalability) string {
	text := fmt.Sprintf("%s with 1, contention %.3g, crosstalk %.3g, residuals up to %s",
		units.FormatRate(u.Lambda), u.Sigma, u.Kappa, units.FormatPercent(u.Residual))
	if peak := u.Peak(); peak < mostInFlight {
		text += fmt.Sprintf("; its peak is at %.0f", peak)
	}
	return text
}
