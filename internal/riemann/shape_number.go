package riemann

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"carronade/internal/splitmix"
	"carronade/payload"
	"carronade/units"
)

// mix makes a 64-bit number from a seed and an index.
func mix(seed, n uint64) uint64 { return splitmix.Mix(seed + n*splitmix.Golden) }

// Kinds of numbers.
type numberKind uint8

const (
	numberConstant numberKind = iota
	numberCycle
	numberPick
	numberUniform
	numberZipf
	numberCounted
	numberWalk
)

// A fieldNumber generates a metric or a ttl: a function of the stream and the
// event's index.
type fieldNumber struct {
	typed string // as the user typed it
	kind  numberKind
	items []float64          // of cycle and pick; one for a constant
	from  float64            // of uniform and walk
	span  float64            // of uniform
	whole bool               // of uniform: whole numbers, including the maximum
	gen   *payload.Generator // of pick and zipf
	seed  uint64
	paths [2][]float64 // of walk

	least, most float64 // bounds of all values

	// ints are the items as whole numbers, if a float64 does not represent one of them; nil otherwise.
	ints []int64
}

// A walk is the sum of two closed paths of these lengths. They are coprime, so
// that the walk repeats only after 16 million events.
const (
	firstPath  = 4096
	secondPath = 4093
)

// at returns the number of one event.
func (n *fieldNumber) at(stream int32, index uint64) float64 {
	var one [1]float64
	n.fill(one[:], stream, index)
	return one[0]
}

// fill sets dst to the numbers of the events first, first+1, ... It runs for
// every event that is sent, so it tests the kind once for all of dst.
func (n *fieldNumber) fill(dst []float64, stream int32, first uint64) {
	draw := uint64(stream)<<40 + first
	switch n.kind {
	case numberConstant:
		for i := range dst {
			dst[i] = n.items[0]
		}
	case numberCycle:
		at := first % uint64(len(n.items))
		for i := range dst {
			dst[i] = n.items[at]
			if at++; at == uint64(len(n.items)) {
				at = 0
			}
		}
	case numberPick:
		for i := range dst {
			dst[i] = n.items[n.gen.KeyNumber(draw+uint64(i))]
		}
	case numberUniform:
		for i := range dst {
			dst[i] = n.from + n.span*(float64(mix(n.seed, draw+uint64(i))>>11)*0x1p-53)
		}
		if n.whole {
			for i := range dst {
				dst[i] = math.Floor(dst[i])
			}
		}
	case numberZipf:
		for i := range dst {
			dst[i] = float64(n.gen.KeyNumber(draw + uint64(i)))
		}
	case numberCounted:
		for i := range dst {
			dst[i] = float64((first + uint64(i)) % maxNumbers)
		}
	case numberWalk:
		// Each stream starts at another place on the same paths.
		start := first%(firstPath*secondPath) + mix(n.seed, uint64(stream))>>32
		a, b := start%firstPath, start%secondPath
		pa, pb := n.paths[0], n.paths[1]
		for i := range dst {
			dst[i] = n.from + pa[a] + pb[b]
			if a++; a == firstPath {
				a = 0
			}
			if b++; b == secondPath {
				b = 0
			}
		}
	}
}

// fillInts is fill for whole numbers.
func (n *fieldNumber) fillInts(dst []int64, stream int32, first uint64) {
	if n.ints == nil {
		var numbers [encoderBlock]float64
		n.fill(numbers[:len(dst)], stream, first)
		for i := range dst {
			dst[i] = int64(math.Round(numbers[i]))
		}
		return
	}
	draw := uint64(stream)<<40 + first
	for i := range dst {
		switch n.kind {
		case numberPick:
			dst[i] = n.ints[n.gen.KeyNumber(draw+uint64(i))]
		case numberUniform:
			at := mix(n.seed, draw+uint64(i))
			if span := uint64(n.ints[1]) - uint64(n.ints[0]) + 1; span != 0 { // 0: all numbers
				at, _ = bits.Mul64(at, span)
			}
			dst[i] = int64(uint64(n.ints[0]) + at)
		default:
			dst[i] = n.ints[(first+uint64(i))%uint64(len(n.ints))]
		}
	}
}

// intBounds are the bounds of whole numbers.
func (n *fieldNumber) intBounds() (least, most int64) {
	if n.ints == nil {
		return int64(math.Round(n.least)), int64(math.Round(n.most))
	}
	return slices.Min(n.ints), slices.Max(n.ints)
}

// wholeItems sets ints, if the items need them.
func (n *fieldNumber) wholeItems(args []string) error {
	if !slices.ContainsFunc(n.items, func(v float64) bool { return math.Abs(v) >= maxNumbers }) {
		return nil
	}
	for i, a := range args {
		v, err := strconv.ParseInt(a, 10, 64)
		if err != nil {
			if f := n.items[i]; f < math.MinInt64 || f >= math.MaxInt64 || errors.Is(err, strconv.ErrRange) {
				return fmt.Errorf("%s does not fit into 64 bits", a)
			}
			v = int64(n.items[i]) // of an exponent
		}
		n.ints = append(n.ints, v)
	}
	return nil
}

// parseNumber reads a number. Its values are durations for a ttl. whole allows
// only whole numbers.
func parseNumber(typed string, seed uint64, whole, isTTL bool) (*fieldNumber, error) {
	n := &fieldNumber{typed: typed, seed: seed, whole: whole}
	value := parseReal
	if isTTL {
		value = parseTTL
	}
	name, args, called, err := callForm(typed)
	if err != nil {
		return nil, err
	}
	switch {
	case called && name == "":
		return nil, errors.New("the name before the parentheses is missing")
	case !called && name != "seq":
		name, args = "", []string{name}
	}
	switch name {
	case "", "cycle", "pick", "uniform", "walk":
		if n.items, err = numbersOf(args, value, whole && name != "walk"); err == nil && whole && name != "walk" {
			err = n.wholeItems(args)
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case isTTL && (name == "walk" || name == "zipf" || name == "seq"):
		return nil, fmt.Errorf("%s cannot be used for a ttl", name)
	case name == "":
		n.kind = numberConstant
	case name == "cycle" || name == "pick":
		if len(n.items) == 0 {
			return nil, fmt.Errorf("%s needs at least one value", name)
		}
		n.kind = numberCycle
		if name == "pick" {
			n.kind, n.gen = numberPick, choiceOf(uint64(len(n.items)), seed)
		}
	case name == "uniform":
		return n, n.parseUniform()
	case name == "zipf":
		if n.gen, err = numbersUpTo(name, args, seed); err != nil {
			return nil, err
		}
		keys, _ := units.ParseCount(args[0])
		n.kind, n.most = numberZipf, float64(keys-1)
		return n, nil
	case name == "seq":
		if called {
			return nil, errors.New("seq takes nothing in parentheses")
		}
		n.kind, n.most = numberCounted, maxNumbers-1
		return n, nil
	case name == "walk":
		return n, n.parseWalk()
	default:
		return nil, fmt.Errorf("%q is not a kind of number", name)
	}
	n.least, n.most = slices.Min(n.items), slices.Max(n.items)
	return n, nil
}

func (n *fieldNumber) parseUniform() error {
	if len(n.items) != 2 || n.ints == nil && !(n.items[0] < n.items[1]) || n.ints != nil && n.ints[0] >= n.ints[1] {
		return errors.New("uniform takes a minimum and a maximum, such as uniform(0,100)")
	}
	n.kind, n.from, n.span = numberUniform, n.items[0], n.items[1]-n.items[0]
	n.least, n.most = n.items[0], n.items[1]
	if n.whole {
		n.span++
	}
	if math.IsInf(n.span, 0) {
		return errors.New("the minimum and the maximum are too far apart")
	}
	return nil
}

// parseWalk makes a random walk that is a function of the event's index: the
// sum of two closed paths. Each has random steps of at most half the maximum
// step, minus their mean, so that the path ends where it began.
func (n *fieldNumber) parseWalk() error {
	if len(n.items) != 2 || !(n.items[1] > 0) {
		return errors.New("walk takes a start and a maximum step, such as walk(50,1)")
	}
	n.kind, n.from = numberWalk, n.items[0]
	n.least, n.most = n.from, n.from
	for which, length := range [...]int{firstPath, secondPath} {
		steps, sum := make([]float64, length), 0.0
		for i := range steps {
			steps[i] = float64(mix(n.seed+uint64(which)+1, uint64(i))>>11)*0x1p-52 - 1
			sum += steps[i]
		}
		longest := 0.0
		for i := range steps {
			steps[i] -= sum / float64(length)
			longest = max(longest, math.Abs(steps[i]))
		}
		path, where := make([]float64, length), 0.0
		for i, s := range steps {
			path[i] = where
			where += s / longest * n.items[1] / 2
		}
		n.paths[which] = path
		n.least += slices.Min(path)
		n.most += slices.Max(path)
	}
	if math.IsInf(n.least, 0) || math.IsInf(n.most, 0) || math.IsNaN(n.least+n.most) {
		return errors.New("the walk leaves the range of numbers")
	}
	return nil
}

func numbersOf(args []string, parse func(string) (float64, error), whole bool) ([]float64, error) {
	var out []float64
	for _, a := range args {
		v, err := parse(a)
		if err != nil {
			return nil, err
		}
		if whole && v != math.Trunc(v) {
			return nil, fmt.Errorf("%s is not a whole number, which sint64 requires; --%s double allows others", a, optMetricType)
		}
		out = append(out, v)
	}
	return out, nil
}

func parseReal(s string) (float64, error) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is not a number", s)
	}
	return v, nil
}

func parseTTL(s string) (float64, error) {
	d, err := units.ParseDuration(s)
	if err != nil {
		return 0, err
	}
	if d <= 0 {
		return 0, fmt.Errorf("a ttl of %q expires at once", s)
	}
	return d.Seconds(), nil
}
