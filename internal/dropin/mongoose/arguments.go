package mongoose

import (
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// values are the options of a command line by name. Options that are not given have
// their defaults.
type values struct {
	given map[string]string
	maps  map[string][][2]string // maps of a scenario, in order; their texts in given are not parsed
	kind  string                 // the type of step
	key   string                 // the key of the nodes that take part; "": the user's own
	// confined is the folder of the files that options may name; "": all files may be named.
	confined string
}

func newValues() *values {
	return &values{given: make(map[string]string), maps: make(map[string][][2]string), kind: linearLoad}
}

// A usageError is an error in mongoose's wording, optionally followed by the list
// of all arguments.
type usageError struct {
	text string
	list bool
}

func (f *usageError) Error() string { return f.text }

func find(name string) *option {
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	if i < 0 {
		return nil
	}
	return &options[i]
}

// parse reads a command line: --a-b-c=value, or --a-b-c for true. If an option is
// repeated, the last value is used.
func parse(args []string, warn func(string, ...any)) (*values, error) {
	v := newValues()
	for _, arg := range args {
		text, ok := strings.CutPrefix(arg, "--")
		if !ok {
			return nil, &usageError{text: fmt.Sprintf("Invalid argument: %q", arg), list: true}
		}
		name, value, has := strings.Cut(text, "=")
		if !has {
			value = "true"
		}
		if a, ok := aliases[name]; ok {
			switch {
			case a.to == "":
				warn("--%s is from an old version of mongoose and does nothing", name)
				continue
			case a.deprecated:
				warn("--%s is deprecated, it is --%s", name, a.to)
			}
			if name = a.to; a.value != "" {
				value = a.value
			}
		}
		o := find(name)
		if o == nil {
			return nil, &usageError{text: fmt.Sprintf("Invalid configuration option: %q", name), list: true}
		}
		if java := o.check(value); java != "" {
			return nil, &usageError{text: fmt.Sprintf("Invalid configuration value type for the option %q, expected: class java.lang.%s, actual: class java.lang.String", name, java)}
		}
		v.given[name] = value
	}
	return v, nil
}

// check returns "" if a value has the option's type, otherwise the Java type it
// should have.
func (o *option) check(value string) string {
	var err error
	switch o.kind {
	case tBool:
		if s := strings.ToLower(value); s != "true" && s != "false" {
			return "Boolean"
		}
	case tInt:
		if _, err = strconv.ParseInt(value, 10, 32); err != nil {
			return "Integer"
		}
	case tLong:
		if _, err = strconv.ParseInt(value, 10, 64); err != nil {
			return "Long"
		}
	case tDouble:
		if _, err = strconv.ParseFloat(value, 64); err != nil {
			return "Double"
		}
	}
	return ""
}

// has reports whether an option was given.
func (v *values) has(name string) bool { _, ok := v.given[name]; return ok }

func (v *values) text(name string) string {
	if s, ok := v.given[name]; ok {
		return s
	}
	o := find(name)
	if o == nil {
		panic("mongoose has no option " + name)
	}
	return o.def
}

func (v *values) flag(name string) bool { return strings.EqualFold(v.text(name), "true") }

// number is 0 for an option without a value.
func (v *values) number(name string) int64 {
	n, _ := strconv.ParseInt(v.text(name), 10, 64) // checked by parse
	return n
}

func (v *values) float(name string) float64 {
	x, _ := strconv.ParseFloat(v.text(name), 64) // likewise
	return x
}

// list is a list, optionally in brackets.
func (v *values) list(name string) []string {
	text := strings.TrimSuffix(strings.TrimPrefix(v.text(name), "["), "]")
	var out []string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.Trim(strings.TrimSpace(part), `"'`); part != "" {
			out = append(out, part)
		}
	}
	return out
}

// addrs are the addresses of a list NAME-addrs; those without a port have that of NAME-port.
func (v *values) addrs(name string) []string {
	all := v.list(name + "-addrs")
	for i, addr := range all {
		if _, _, err := net.SplitHostPort(addr); err != nil {
			all[i] = net.JoinHostPort(strings.Trim(addr, "[]"), v.text(name+"-port"))
		}
	}
	return all
}

// duration is an integer followed by s, m, h or d, or by .seconds and so on, or in seconds.
func (v *values) duration(name string) (time.Duration, error) {
	text := strings.ToLower(strings.TrimSpace(v.text(name)))
	if number, word, ok := strings.Cut(text, "."); ok { // 10.seconds is 10s
		if word = strings.TrimSuffix(word, "s"); slices.Contains([]string{"second", "minute", "hour", "day"}, word) {
			text = number + word[:1]
		}
	}
	text, unit := cutUnit(text)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(math.MaxInt64/unit) {
		return 0, fmt.Errorf("--%s: %q is not a time: a whole number with s, m, h or d, such as 30s", name, v.text(name))
	}
	return time.Duration(n) * unit, nil
}

// cutUnit cuts the unit of a time off its text: s, m, h or d; without one it is in seconds.
func cutUnit(text string) (number string, unit time.Duration) {
	if n := len(text) - 1; n >= 0 {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[text[n]]; ok {
			return text[:n], u
		}
	}
	return text, time.Second
}

// sizeForm matches a number of bytes; units are powers of 1024.
var sizeForm = regexp.MustCompile(`^([0-9]+(?:\.[0-9]*)?|\.[0-9]+)([kmgtpe]?)b?$`)

func parseSize(text string) (int64, bool) {
	m := sizeForm.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return 0, false
	}
	x, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return 0, false
	}
	if m[2] != "" {
		x *= math.Exp2(float64(10 * (1 + strings.Index("kmgtpe", m[2]))))
	}
	if x > math.MaxInt64/2 {
		return 0, false
	}
	return int64(x), true
}

// size is a single size.
func (v *values) size(name string) (int64, error) {
	n, ok := parseSize(v.text(name))
	if !ok {
		return 0, fmt.Errorf("--%s: %q is not a size such as 10KB", name, v.text(name))
	}
	return n, nil
}

// sizes is a size or a range of sizes. The bias of a range must be 1, for uniform
// sizes; workloads have no others.
func (v *values) sizes(name string) (low, high int64, err error) {
	text, bias, has := strings.Cut(v.text(name), ",")
	if b, err := strconv.ParseFloat(strings.TrimSpace(bias), 64); has && (err != nil || b != 1) {
		return 0, 0, fmt.Errorf("--%s: a bias of %s is not supported: sizes are uniform, --%s=%s", name, bias, name, text)
	}
	from, to, ranged := strings.Cut(text, "-")
	low, ok := parseSize(from)
	high = low
	if ranged && ok {
		high, ok = parseSize(to)
	}
	if !ok || high < low {
		return 0, 0, fmt.Errorf("--%s: %q is not a size such as 10KB or 1KB-4KB", name, v.text(name))
	}
	return low, high, nil
}

// pairs is a map: NAME:VALUE or NAME=VALUE, separated by commas.
func (v *values) pairs(name string) ([][2]string, error) {
	if pairs, ok := v.maps[name]; ok {
		return pairs, nil
	}
	text := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(v.text(name)), "{"), "}")
	var out [][2]string
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		i := strings.IndexAny(part, ":=")
		if i < 1 {
			return nil, fmt.Errorf("--%s: %q is not a header: NAME:VALUE", name, part)
		}
		if strings.ContainsAny(part, "{}") {
			return nil, fmt.Errorf("--%s: expressions are not evaluated here: %s", name, part)
		}
		unquote := func(s string) string { return strings.Trim(strings.TrimSpace(s), `"'`) }
		out = append(out, [2]string{unquote(part[:i]), unquote(part[i+1:])})
	}
	return out, nil
}
