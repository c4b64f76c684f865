package payload

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"sort"
	"strconv"
	"strings"

	"carronade/units"
)

const (
	// maxValue is the largest value size that may be requested. No protocol here
	// carries a larger one, and it catches typing errors.
	maxValue = 1 << 30
	// maxWeighted limits the number of choices of a weighted distribution.
	maxWeighted = 1000
)

// sizes is a distribution of sizes: fixed when span is 1, uniform over
// min..min+span-1 otherwise, or one of choices by cuts, or between two of them.
type sizes struct {
	text      string
	min, span uint64

	choices []int32
	cuts    []uint64 // weighted: choice i is drawn for random numbers below cuts[i]; nil: all are equally likely
	between bool     // quantiles: sizes lie between two consecutive choices, each pair equally likely

	mean float64
	max  int
}

func (s *sizes) size(seed, n uint64) int {
	if s.choices == nil {
		if s.span == 1 {
			return int(s.min)
		}
		return int(s.min + below(mix(seed, n), s.span))
	}
	u := mix(seed, n)
	if s.between {
		return s.interpolate(u)
	}
	if s.cuts == nil {
		return int(s.choices[below(u, uint64(len(s.choices)))])
	}
	if len(s.cuts) > 16 {
		i := sort.Search(len(s.cuts)-1, func(i int) bool { return u < s.cuts[i] })
		return int(s.choices[i])
	}
	for i, cut := range s.cuts {
		if u < cut {
			return int(s.choices[i])
		}
	}
	return int(s.choices[len(s.choices)-1]) // u is 2^64-1
}

// interpolate draws a size between two consecutive quantiles: the high word of the product
// selects the pair, the low word the place between them.
func (s *sizes) interpolate(u uint64) int {
	i, rest := bits.Mul64(u, uint64(len(s.choices)-1))
	low, high := s.choices[i], s.choices[i+1]
	above, _ := bits.Mul64(rest, uint64(high-low+1))
	return int(low) + int(above)
}

func (s *sizes) describe() string {
	if s.choices == nil && s.span == 1 {
		return units.FormatSize(int64(s.min)) + " each"
	}
	if s.between {
		return fmt.Sprintf("%d quantiles from %s to %s, %s in the mean", len(s.choices), units.FormatSize(int64(s.choices[0])), units.FormatSize(int64(s.max)), units.FormatSize(int64(math.Round(s.mean))))
	}
	return fmt.Sprintf("%s bytes, %s in the mean", s.text, units.FormatSize(int64(math.Round(s.mean))))
}

func parseSizes(s string) (sizes, error) {
	out := sizes{text: s}
	name, args, ok := splitCall(s)
	if !ok {
		return out, specError("size", s, errUnclosed, SizeForms)
	}
	var err error
	switch {
	case name == "weighted":
		err = out.weighted(splitArguments(args))
	case name == "lognormal":
		err = out.lognormal(splitArguments(args))
	case name == "quantiles":
		err = out.quantileList(splitArguments(args))
	case strings.Contains(s, "("):
		err = fmt.Errorf("%q is not a distribution", name)
	default:
		err = out.uniform(s)
	}
	if err != nil {
		return out, specError("size", s, err, SizeForms)
	}
	return out, nil
}

func oneSize(s string) (uint64, error) {
	n, err := units.ParseSize(s)
	if err != nil {
		return 0, err
	}
	if n > maxValue {
		return 0, fmt.Errorf("%s is more than the maximum value size, %s", s, units.FlagSize(maxValue))
	}
	return uint64(n), nil
}

func (s *sizes) uniform(text string) error {
	from, to, ranged := strings.Cut(text, "-")
	if strings.TrimSpace(from) == "" {
		_, err := units.ParseSize(text) // has a specific error for a negative size
		return err
	}
	low, err := oneSize(from)
	if err != nil {
		return err
	}
	high := low
	if ranged {
		if high, err = oneSize(to); err != nil {
			return err
		}
	}
	if high < low {
		return errors.New("the range ends before it begins")
	}
	s.min, s.span = low, high-low+1
	s.mean, s.max = float64(low+high)/2, int(high)
	return nil
}

func (s *sizes) weighted(args []string) error {
	if len(args) == 0 || len(args) > maxWeighted {
		return fmt.Errorf("has %d choices, not 1 to %d", len(args), maxWeighted)
	}
	weights, sum := make([]float64, len(args)), 0.0
	for i, arg := range args {
		size, weight, ok := strings.Cut(arg, ":")
		if !ok {
			return fmt.Errorf("%q has no weight", arg)
		}
		n, err := oneSize(size)
		if err != nil {
			return err
		}
		w, err := strconv.ParseFloat(strings.TrimSpace(weight), 64)
		if err != nil || !(w >= 0) || w > 1e15 {
			return fmt.Errorf("%q is not a weight from 0 to 1e15", strings.TrimSpace(weight))
		}
		s.choices = append(s.choices, int32(n))
		weights[i] = w
		sum += w
		if w > 0 {
			s.max = max(s.max, int(n))
		}
	}
	if sum <= 0 {
		return errors.New("all weights are 0")
	}
	reached := 0.0
	for i, w := range weights {
		reached += w
		s.mean += float64(s.choices[i]) * w / sum
		s.cuts = append(s.cuts, fraction(reached/sum))
	}
	// Rounding must not assign the last random numbers to a choice of weight 0.
	for i := len(weights) - 1; i >= 0; i-- {
		s.cuts[i] = math.MaxUint64
		if weights[i] > 0 {
			s.choices, s.cuts = s.choices[:i+1], s.cuts[:i+1]
			break
		}
	}
	return nil
}

// quantileList reads quantiles(MIN,...,MAX): the sizes at equal steps of probability, from 0
// to 1. Sizes are uniform between two of them, and two equal ones are a size that is common.
func (s *sizes) quantileList(args []string) error {
	if len(args) < 2 || len(args) > maxWeighted {
		return fmt.Errorf("has %d quantiles, not 2 to %d", len(args), maxWeighted)
	}
	for i, arg := range args {
		n, err := oneSize(arg)
		if err != nil {
			return err
		}
		if i > 0 && int32(n) < s.choices[i-1] {
			return fmt.Errorf("%s comes after a larger quantile", arg)
		}
		s.choices = append(s.choices, int32(n))
	}
	for i, low := range s.choices[:len(s.choices)-1] {
		s.mean += (float64(low) + float64(s.choices[i+1])) / 2 / float64(len(s.choices)-1)
	}
	s.between, s.max = true, int(s.choices[len(s.choices)-1])
	return nil
}

// fraction returns f * 2^64, for f in [0, 1].
func fraction(f float64) uint64 {
	if f >= 1 {
		return math.MaxUint64
	}
	return uint64(math.Ldexp(f, 64))
}

// quantiles is the number of equally likely sizes that represent a log-normal
// distribution. Drawing from a table takes a few ns, computing the inverse of the error
// function a hundred. A table also makes mean and maximum exact, and limits the tails
// to 4 sigma: with 2^14, the last is the 1-1/32768 quantile.
const quantiles = 1 << 14

func (s *sizes) lognormal(args []string) error {
	if len(args) != 2 {
		return errors.New("a lognormal needs a median and a sigma")
	}
	median, err := oneSize(args[0])
	if err != nil {
		return err
	}
	sigma, err := strconv.ParseFloat(args[1], 64)
	if err != nil || !(sigma > 0) || sigma > 10 {
		return fmt.Errorf("%q is not a sigma above 0 and up to 10", args[1])
	}
	if median == 0 {
		return errors.New("the median is 0")
	}
	s.choices = make([]int32, quantiles)
	for i := range s.choices {
		p := (float64(i) + 0.5) / quantiles
		z := math.Sqrt2 * math.Erfinv(2*p-1)
		size := math.Round(float64(median) * math.Exp(sigma*z))
		if size > maxValue {
			return fmt.Errorf("its largest sizes, at 4 sigma, are more than the maximum value size, %s", units.FlagSize(maxValue))
		}
		s.choices[i] = int32(size)
		s.mean += size / quantiles
	}
	s.max = int(s.choices[quantiles-1])
	return nil
}
