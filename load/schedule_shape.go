package load

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/units"
)

// ShapeForms lists the shapes that ParseShape accepts, for help and documents.
const ShapeForms = `constant(RATE)               such as constant(50k/s)
ramp(RATE,RATE,TIME)         from, to: such as ramp(1k/s,100k/s,30s)
steps(RATE:TIME,...)         in order: such as steps(10k/s:10s,20k/s:10s)
steps(RATE..RATE,RATE,TIME)  from, to, by: such as steps(1k/s..9k/s,2k/s,10s)
sine(RATE,RATE,TIME)         mean, swing, period: such as sine(50k/s,9k/s,60s)
burst(EVENTS,TIME)           that many at once, every: such as burst(1000,1s)
poisson(RATE[,SEED])         at random: such as poisson(5k/s)
SHAPE:TIME                   for this time: such as constant(1k/s):10s
SHAPE+SHAPE+...              such as constant(1k/s):9s+ramp(1k/s,9k/s,9s)`

// ParseShape parses a schedule in one of the forms of ShapeForms. A Poisson shape
// without a seed gets seed 1; see ParseShapeSeed.
func ParseShape(text string) (Schedule, error) { return ParseShapeSeed(text, 1) }

// ParseShapeSeed is ParseShape with the given seed for Poisson shapes that have none.
func ParseShapeSeed(text string, seed uint64) (Schedule, error) {
	parts, err := split(text, '+')
	if err != nil {
		return nil, fmt.Errorf("shape %q: %w", text, err)
	}
	var joined []Schedule
	for i, p := range parts {
		s, err := parsePhase(p, seed)
		if err != nil {
			if len(parts) > 1 {
				return nil, fmt.Errorf("shape %q: phase %d: %w", text, i+1, err)
			}
			return nil, fmt.Errorf("shape %q: %w", text, err)
		}
		if i < len(parts)-1 && s.End() == Never {
			return nil, fmt.Errorf("shape %q: phase %d never ends, and others follow: add its length, such as %s:10s", text, i+1, p)
		}
		joined = append(joined, s)
	}
	if len(joined) == 1 {
		return joined[0], nil
	}
	var total time.Duration
	for _, s := range joined {
		if end := s.End(); end != Never {
			if total += end; total > MaxSpan {
				return nil, fmt.Errorf("shape %q: longer than %d days", text, MaxSpan/(24*time.Hour))
			}
		}
	}
	return Joined(joined...), nil
}

// split cuts at a separator outside parentheses. It refuses empty parts.
func split(text string, sep byte) ([]string, error) {
	var parts []string
	depth, from := 0, 0
	for i := range len(text) {
		switch text[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				return nil, fmt.Errorf("a ) without its (")
			}
		case sep:
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(text[from:i]))
				from = i + 1
			}
		}
	}
	if depth > 0 {
		return nil, fmt.Errorf("a ( without its )")
	}
	parts = append(parts, strings.TrimSpace(text[from:]))
	if slices.Contains(parts, "") {
		return nil, fmt.Errorf("nothing between two %q, or at an end; shapes are\n%s", sep, ShapeForms)
	}
	return parts, nil
}

func parsePhase(text string, seed uint64) (Schedule, error) {
	name, rest, ok := strings.Cut(text, "(")
	name = strings.ToLower(strings.TrimSpace(name))
	parse := shapes[name]
	if parse == nil {
		return nil, fmt.Errorf("unknown shape %q; shapes are\n%s", name, ShapeForms)
	}
	closing := strings.LastIndexByte(rest, ')')
	if !ok || closing < 0 {
		return nil, fmt.Errorf("%s needs its values in ( ), as %s", name, form(name))
	}
	args, tail := rest[:closing], strings.TrimSpace(rest[closing+1:])
	if strings.ContainsAny(args, "()") {
		return nil, fmt.Errorf("%s: %q is not a value; it is written %s", name, args, form(name))
	}
	values, err := split(args, ',')
	if err != nil {
		return nil, fmt.Errorf("%s: an empty value; it is written %s", name, form(name))
	}
	s, err := parse(values, seed)
	if err != nil {
		return nil, err
	}
	if tail == "" {
		return s, nil
	}
	length, ok := strings.CutPrefix(tail, ":")
	if !ok {
		return nil, fmt.Errorf("%q after %s(...): a phase ends with :TIME, and + joins it with the next", tail, name)
	}
	d, err := units.ParseDuration(strings.TrimSpace(length))
	if err != nil {
		return nil, err
	}
	if err := checkSpan(d); err != nil {
		return nil, err
	}
	if end := s.End(); d > end {
		return nil, fmt.Errorf("%s ends after %v by itself, and cannot last %v", name, end, d)
	}
	return Until(s, d), nil
}

var shapes = map[string]func(values []string, seed uint64) (Schedule, error){
	"constant": parseConstant, "ramp": parseRamp, "steps": parseSteps,
	"sine": parseSine, "burst": parseBurst, "poisson": parsePoisson,
}

// form returns the syntax of a shape from ShapeForms.
func form(name string) string {
	var forms []string
	for line := range strings.SplitSeq(ShapeForms, "\n") {
		if strings.HasPrefix(line, name+"(") {
			f, _, _ := strings.Cut(line, " ")
			forms = append(forms, f)
		}
	}
	return strings.Join(forms, " or ")
}

func wantValues(name string, values []string, n ...int) error {
	if slices.Contains(n, len(values)) {
		return nil
	}
	return fmt.Errorf("%s does not take %d values: it is written %s", name, len(values), form(name))
}

func parseConstant(v []string, _ uint64) (Schedule, error) {
	if err := wantValues("constant", v, 1); err != nil {
		return nil, err
	}
	rate, err := units.ParseRate(v[0])
	if err != nil {
		return nil, err
	}
	if err := CheckRate(rate); err != nil {
		return nil, err
	}
	return Constant(rate), nil
}

func parseRamp(v []string, _ uint64) (Schedule, error) {
	if err := wantValues("ramp", v, 3); err != nil {
		return nil, err
	}
	from, to, over, err := twoRatesAndTime(v)
	if err != nil {
		return nil, err
	}
	if err := checkRamp(from, to, over); err != nil {
		return nil, err
	}
	return Ramp(from, to, over), nil
}

func parseSine(v []string, _ uint64) (Schedule, error) {
	if err := wantValues("sine", v, 3); err != nil {
		return nil, err
	}
	mean, amplitude, period, err := twoRatesAndTime(v)
	if err != nil {
		return nil, err
	}
	if err := checkSine(mean, amplitude, period); err != nil {
		return nil, err
	}
	return Sine(mean, amplitude, period), nil
}

func twoRatesAndTime(v []string) (a, b float64, d time.Duration, err error) {
	if a, err = units.ParseRate(v[0]); err != nil {
		return 0, 0, 0, err
	}
	if b, err = units.ParseRate(v[1]); err != nil {
		return 0, 0, 0, err
	}
	d, err = units.ParseDuration(v[2])
	return a, b, d, err
}

func parseBurst(v []string, _ uint64) (Schedule, error) {
	if err := wantValues("burst", v, 2); err != nil {
		return nil, err
	}
	n, err := units.ParseCount(v[0])
	if err != nil {
		return nil, err
	}
	every, err := units.ParseDuration(v[1])
	if err != nil {
		return nil, err
	}
	if err := checkBurst(n, every); err != nil {
		return nil, err
	}
	return Burst(n, every), nil
}

func parsePoisson(v []string, seed uint64) (Schedule, error) {
	if err := wantValues("poisson", v, 1, 2); err != nil {
		return nil, err
	}
	rate, err := units.ParseRate(v[0])
	if err != nil {
		return nil, err
	}
	if len(v) == 2 {
		if seed, err = strconv.ParseUint(v[1], 10, 64); err != nil {
			return nil, fmt.Errorf("poisson: the seed %q is not a whole number", v[1])
		}
	}
	if err := checkPoisson(rate); err != nil {
		return nil, err
	}
	return Poisson(rate, seed), nil
}

// maxSteps limits the steps of a shape: each has its own row in the report.
const maxSteps = 10_000

func parseSteps(v []string, _ uint64) (Schedule, error) {
	var steps []Step
	var at time.Duration
	add := func(rate float64, d time.Duration) {
		steps = append(steps, Step{Rate: rate, Start: at, End: at + d})
		at += d
	}
	if strings.Contains(v[0], "..") {
		if err := wantValues("steps", v, 3); err != nil {
			return nil, err
		}
		rates, d, err := parseStairs(v)
		if err != nil {
			return nil, err
		}
		for _, r := range rates {
			add(r, d)
		}
	} else {
		if len(v) > maxSteps {
			return nil, fmt.Errorf("steps: %d are more than %d", len(v), maxSteps)
		}
		for _, pair := range v {
			r, l, ok := strings.Cut(pair, ":")
			if !ok {
				return nil, fmt.Errorf("steps: %q is not RATE:TIME, such as 10k/s:10s; it is written %s", pair, form("steps"))
			}
			rate, err := units.ParseRate(strings.TrimSpace(r))
			if err != nil {
				return nil, err
			}
			d, err := units.ParseDuration(strings.TrimSpace(l))
			if err != nil {
				return nil, err
			}
			if err := checkSpan(d); err != nil {
				return nil, fmt.Errorf("steps: %w", err)
			}
			if at > MaxSpan {
				break // checkSteps reports the error
			}
			add(rate, d)
		}
	}
	if err := checkSteps(steps); err != nil {
		return nil, err
	}
	return Steps(steps), nil
}

// parseStairs parses FROM..TO,BY,TIME. The last rate is TO, or the last one before it if BY
// does not divide the difference.
func parseStairs(v []string) ([]float64, time.Duration, error) {
	first, last, _ := strings.Cut(v[0], "..")
	from, err := units.ParseRate(strings.TrimSpace(first))
	if err != nil {
		return nil, 0, err
	}
	to, err := units.ParseRate(strings.TrimSpace(last))
	if err != nil {
		return nil, 0, err
	}
	by, err := units.ParseRate(v[1])
	if err != nil {
		return nil, 0, err
	}
	d, err := units.ParseDuration(v[2])
	if err != nil {
		return nil, 0, err
	}
	if err := checkSpan(d); err != nil {
		return nil, 0, fmt.Errorf("steps: %w", err)
	}
	if by <= 0 {
		return nil, 0, fmt.Errorf("steps: a rise of %s by step has no effect: want more than 0", v[1])
	}
	n := math.Floor(math.Abs(to-from)/by + 1e-9)
	if n >= maxSteps {
		return nil, 0, fmt.Errorf("steps: %s by %s are more than %d steps", v[0], v[1], maxSteps)
	}
	if n*float64(d) > float64(MaxSpan) {
		return nil, 0, fmt.Errorf("steps: together longer than %d days", MaxSpan/(24*time.Hour))
	}
	if to < from {
		by = -by
	}
	var rates []float64
	for i := range int(n) + 1 {
		// Twelve digits, so that three times 0.1 is 0.3.
		r := units.RoundRate(from+float64(i)*by, 12)
		rates = append(rates, max(0, r))
	}
	return rates, d, nil
}
