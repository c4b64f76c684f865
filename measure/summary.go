package measure

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Value is one percentile.
type Value struct {
	P       float64 // in percent
	D       time.Duration
	AtLeast bool // the percentile is D or more, because events without an answer lie at or beyond it
}

// Text prints a percentile as a lower bound if it is one, and as more than an hour if
// only that is known. of prints a time.
func (v Value) Text(of func(time.Duration) string) string {
	switch {
	case v.D >= Over:
		return "> 1 h"
	case v.AtLeast:
		return ">= " + of(v.D)
	}
	return of(v.D)
}

// PercentileName returns the name of percentile p: "p99.9".
func PercentileName(p float64) string { return "p" + strconv.FormatFloat(p, 'f', -1, 64) }

// tolerance is the largest relative distance between the lowest and the highest
// possible value of a percentile that counts as known: ten times the width of a cell.
const tolerance = 0.01

// Percentiles returns the values at ps over the answered events (h) and the ages of
// events without an answer (censored); either may be nil. An age is a lower bound of
// the time that the answer would have taken. So a percentile lies between its value if
// those answers had taken no longer than their ages, and its value if they had taken
// forever. If the two differ by at most a hundredth, as below the smallest age, or if
// few of many events have no answer, the percentile is known, and is the larger of the
// two. From the first percentile on that is not known, all are marked AtLeast, and are
// the smaller value, read from the bottom of its cell instead of the top. ps may have
// any order, which the result keeps.
func Percentiles(h, censored *Histogram, ps []float64) []Value {
	out := make([]Value, len(ps))
	for i, p := range ps {
		out[i].P = p
	}
	if h.Count()+censored.Count() == 0 {
		return out
	}
	order := slices.Clone(ps)
	slices.Sort(order)
	at := make([]time.Duration, len(order))
	bounds := len(order) // index of the first lower bound
	if censored.Count() == 0 {
		h.percentiles(order, h.count, at)
	} else {
		bounds = censoredPercentiles(h, censored, order, at)
	}
	for i := range out {
		k, _ := slices.BinarySearch(order, out[i].P)
		out[i].D, out[i].AtLeast = at[k], k >= bounds
	}
	return out
}

// censoredPercentiles fills at with the percentiles at ps, which ascend, of answers and
// ages, and returns the index of the first that is a lower bound; all after it are,
// too.
func censoredPercentiles(h, censored *Histogram, ps []float64, at []time.Duration) int {
	both := NewHistogram()
	both.Merge(h)
	both.Merge(censored)
	least, most := make([]time.Duration, len(ps)), at
	both.percentiles(ps, both.count, least)
	for i := range most {
		most[i] = math.MaxInt64 // for ranks beyond the number of answers
	}
	if h.Count() > 0 {
		h.percentiles(ps, both.count, most)
	}
	first := 0
	for first < len(ps) && float64(most[first]) <= (1+tolerance)*float64(least[first])+float64(Lowest) {
		first++
	}
	for i := first; i < len(ps); i++ {
		at[i] = atLeast(least[i], h, censored)
	}
	for i := 0; i < first && first < len(ps); i++ {
		at[i] = min(at[i], at[first]) // percentiles ascend
	}
	return first
}

// atLeast returns the lower end of the cell whose upper end is top, or the smallest age
// if that cell contains only ages.
func atLeast(top time.Duration, h, censored *Histogram) time.Duration {
	if top > Highest {
		return Over
	}
	i := cell(units(top))
	bottom := time.Duration(0)
	if i > 0 {
		bottom = time.Duration(cellTop(i-1)+1) * Lowest
	}
	if h.Count() > 0 {
		answered := uint64(0)
		h.eachCell(func(j int, n uint64) {
			if i == j {
				answered = n
			}
		})
		if answered > 0 {
			return min(bottom, top)
		}
	}
	return min(max(bottom, censored.min), top)
}

// A Summary is a histogram in a dozen numbers, in microseconds. Mean, Min and Max are
// exact to the nanosecond and cover only answered events; percentiles have three
// significant digits and include the events without an answer.
type Summary struct {
	Count uint64
	Mean  float64
	Min   float64
	Max   float64

	Percentiles []Value // ascending; the standard ones and those requested

	Below    uint64 // shorter than 1 us
	Above    uint64 // longer than 1 h
	Censored uint64 // events without an answer

	// CensoredMin is the smallest age of an event without an answer, below which no
	// percentile is a lower bound. CensoredMean and CensoredMax are the mean and the
	// largest of those ages; 0 in older reports. Valid only if Censored > 0.
	CensoredMin, CensoredMean, CensoredMax float64
	// AtLeastFrom is the first percentile, in percent, that is only a lower bound
	// because of those events; all beyond it are, too. 0 if they are too few to affect
	// any.
	AtLeastFrom float64
}

// SummaryPercentiles returns the percentiles in a summary with extra ones, ascending.
func SummaryPercentiles(extra []float64) []float64 {
	ps := append(StandardPercentiles(), extra...)
	slices.Sort(ps)
	return slices.Compact(ps)
}

// Summarize returns the summary of h with the standard percentiles and extra ones. It
// returns nil when h is nil, to distinguish a number that does not exist from one
// without any values.
func Summarize(h, censored *Histogram, extra []float64) *Summary {
	if h == nil {
		return nil
	}
	return SummaryOf(h, censored, Percentiles(h, censored, SummaryPercentiles(extra)))
}

// SummaryOf returns the summary of h, which is not nil, from its percentiles: those that
// Percentiles returns, in ascending order. It does not read the cells.
func SummaryOf(h, censored *Histogram, percentiles []Value) *Summary {
	s := &Summary{
		Count:       h.Count(),
		Mean:        h.mean() / 1e3,
		Min:         Micros(h.Min()),
		Max:         Micros(h.Max()),
		Percentiles: percentiles,
		Below:       h.Below(),
		Above:       h.Above(),
		Censored:    censored.Count(),
	}
	if s.Censored > 0 {
		s.CensoredMin, s.CensoredMean, s.CensoredMax = Micros(censored.Min()), censored.mean()/1e3, Micros(censored.Max())
		s.AtLeastFrom = firstAtLeast(s.Percentiles)
	}
	return s
}

// firstAtLeast returns the lowest percentile that is a lower bound; 0 if there is none.
func firstAtLeast(ascending []Value) float64 {
	for _, v := range ascending {
		if v.AtLeast {
			return v.P
		}
	}
	return 0
}

// IsEmpty reports whether neither an answer nor the lack of one was counted.
func (s *Summary) IsEmpty() bool { return s == nil || s.Count+s.Censored == 0 }

// At returns percentile p, false when the summary does not have it.
func (s *Summary) At(p float64) (Value, bool) {
	if s == nil {
		return Value{}, false
	}
	for _, v := range s.Percentiles {
		if v.P == p {
			return v, !s.IsEmpty()
		}
	}
	return Value{}, false
}

// Largest is the maximum, false if nothing was counted. Any event without an answer makes it a
// lower bound: the longest answer, age or percentile, whichever is largest.
func (s *Summary) Largest() (Value, bool) {
	if s.IsEmpty() {
		return Value{}, false
	}
	v := Value{P: 100, D: nanos(s.Max)}
	if s.Censored > 0 {
		v.AtLeast = true
		v.D = max(v.D, nanos(s.CensoredMin), nanos(s.CensoredMax))
		for _, p := range s.Percentiles {
			v.D = max(v.D, p.D)
		}
	}
	return v, true
}

// Average is the mean, false if nothing was counted. If the events without an answer make a
// percentile a lower bound, the mean is one, too, and includes their ages. Otherwise it is of the
// answered events alone.
func (s *Summary) Average() (Value, bool) {
	switch {
	case s.IsEmpty():
		return Value{}, false
	case s.AtLeastFrom == 0:
		return Value{D: nanos(s.Mean)}, s.Count > 0
	}
	n, censored := float64(s.Count), float64(s.Censored)
	mean := (s.Mean*n + max(s.CensoredMin, s.CensoredMean)*censored) / (n + censored)
	return Value{D: nanos(mean), AtLeast: true}, true
}

// Micros returns d in microseconds, the unit of reports.
func Micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// PercentileKey is the JSON name of percentile p: p50_us, p999_us for 99.9.
// Below ten per cent the point has to stay visible: p0_1_us.
func PercentileKey(p float64) string {
	whole, rest, fraction := strings.Cut(PercentileName(p), ".")
	switch {
	case !fraction:
		return whole + "_us"
	case len(whole) == len("p99"):
		return whole + rest + "_us"
	}
	return whole + "_" + rest + "_us"
}

// parsePercentileKey is the inverse of PercentileKey.
func parsePercentileKey(key string) (float64, bool) {
	digits, ok := strings.CutPrefix(key, "p")
	if !ok {
		return 0, false
	}
	if digits, ok = strings.CutSuffix(digits, "_us"); !ok {
		return 0, false
	}
	switch {
	case strings.Contains(digits, "_"):
		digits = strings.Replace(digits, "_", ".", 1)
	case len(digits) > 2 && digits != "100":
		digits = digits[:2] + "." + digits[2:]
	}
	p, err := strconv.ParseFloat(digits, 64)
	return p, err == nil && p >= 0 && p <= 100 && PercentileKey(p) == key
}

// MarshalJSON writes one flat object, percentiles under names such as p50_us. Numbers
// without any values are null.
func (s *Summary) MarshalJSON() ([]byte, error) {
	if s == nil {
		return []byte("null"), nil
	}
	var b bytes.Buffer
	number := func(name string, x float64, ok bool) {
		if ok {
			// Rounded to the nanosecond; the rest is noise.
			fmt.Fprintf(&b, `,%q:%s`, name, strconv.FormatFloat(math.Round(x*1e3)/1e3, 'f', -1, 64))
		} else {
			fmt.Fprintf(&b, `,%q:null`, name)
		}
	}
	fmt.Fprintf(&b, `{"count":%d`, s.Count)
	number("mean_us", s.Mean, s.Count > 0)
	number("min_us", s.Min, s.Count > 0)
	for _, v := range s.Percentiles {
		number(PercentileKey(v.P), Micros(v.D), !s.IsEmpty())
	}
	number("max_us", s.Max, s.Count > 0)
	fmt.Fprintf(&b, `,"below_range":%d,"above_range":%d,"censored":%d`, s.Below, s.Above, s.Censored)
	number("at_least_from_us", s.CensoredMin, s.Censored > 0)
	number("at_least_from_p", s.AtLeastFrom, s.AtLeastFrom > 0)
	number("censored_mean_us", s.CensoredMean, s.CensoredMax > 0)
	number("censored_max_us", s.CensoredMax, s.CensoredMax > 0)
	b.WriteByte('}')
	return b.Bytes(), nil
}

// UnmarshalJSON reads what MarshalJSON wrote; it ignores unknown names, as those of a
// later version.
func (s *Summary) UnmarshalJSON(data []byte) error {
	var fields map[string]*float64
	if err := json.Unmarshal(data, &fields); err != nil {
		return fmt.Errorf("read a summary of times: %w", err)
	}
	*s = Summary{}
	get := func(name string) float64 {
		if x := fields[name]; x != nil {
			return *x
		}
		return 0
	}
	s.Count = uint64(get("count"))
	s.Mean, s.Min, s.Max = get("mean_us"), get("min_us"), get("max_us")
	s.Below, s.Above = uint64(get("below_range")), uint64(get("above_range"))
	s.Censored, s.CensoredMin, s.AtLeastFrom = uint64(get("censored")), get("at_least_from_us"), get("at_least_from_p")
	s.CensoredMean, s.CensoredMax = get("censored_mean_us"), get("censored_max_us")
	// In older reports, all percentiles from the smallest age on are lower bounds.
	_, tells := fields["at_least_from_p"]
	old := !tells && s.Censored > 0
	for name := range fields {
		if p, ok := parsePercentileKey(name); ok {
			us := get(name)
			s.Percentiles = append(s.Percentiles, Value{
				P:       p,
				D:       time.Duration(math.Round(us * 1e3)),
				AtLeast: old && us >= s.CensoredMin || !old && s.AtLeastFrom > 0 && p >= s.AtLeastFrom,
			})
		}
	}
	slices.SortFunc(s.Percentiles, func(a, b Value) int { return cmp.Compare(a.P, b.P) })
	if old {
		s.AtLeastFrom = firstAtLeast(s.Percentiles)
	}
	return nil
}
