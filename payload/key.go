package payload

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"carronade/units"
)

type keyKind uint8

const (
	none keyKind = iota
	seq
	uniform
	zipfian
	expressed
	numbered
)

// seqWidth is the minimum width of sequential keys: enough for a trillion events.
const seqWidth = 12

// maxNames limits the number of names: each is a number of 63 bits.
const maxNames = 1 << 63

// maxKeys limits the keys of a zipf distribution: float64 represents all integers up to
// here.
const maxKeys = 1 << 53

// maxKeyDigits limits the digits that may be requested for keys.
const maxKeyDigits = 4096

type keys struct {
	text  string
	kind  keyKind
	n     uint64
	width int // of the text, with leading zeros
	radix int // of names; 0: ten
	zipf  zipf

	template *Template // of expressed; of numbered: the number
	prefix   *Template // of numbered
}

// usesEnv reports whether a numbered key contains the value of an environment variable.
func (k *keys) usesEnv() bool { return k.template.UsesEnv() || k.prefix.UsesEnv() }

// maxDigits is the length of the longest number: 64 bits in the radix 2, and a sign.
const maxDigits = 65

// parseNumbered reads number(RADIX,EXPRESSION[,PREFIX]).
func (k *keys) parseNumbered(args string, seed uint64) (err error) {
	radix, rest, ok := strings.Cut(args, ",")
	if k.radix, err = strconv.Atoi(strings.TrimSpace(radix)); err != nil || k.radix < 2 || k.radix > 36 || !ok {
		return errors.New("number takes a radix from 2 to 36, an expression that is an integer, and optionally a text before the digits")
	}
	text, prefix, _ := CutText(rest, ',')
	if k.template, err = parseNumber(strings.TrimSpace(text), seed); err != nil {
		return err
	}
	if k.prefix, err = ParseTemplate(prefix, TemplateOptions{Seed: mix(seed, 1), Use: Repeatable}); err != nil {
		return fmt.Errorf("the text before the digits: %w", err)
	}
	k.kind, k.width = numbered, k.prefix.MaxLen()+maxDigits
	return nil
}

func (k *keys) number(seed, n uint64) uint64 {
	switch k.kind {
	case seq, expressed, numbered:
		return n
	case uniform:
		return below(mix(seed, n), k.n)
	case zipfian:
		return k.zipf.number(mix(seed, n))
	}
	return 0
}

func (k *keys) describe() string { return k.text }

// parseKeys reads keys. The seed is that of the random values of expressions. A key may be
// computed again, to find an event that was read back, so it must not depend on the time.
func parseKeys(s string, seed uint64) (keys, error) {
	out := keys{text: s}
	if args, ok := strings.CutPrefix(s, "number("); ok {
		if err := out.parseNumbered(strings.TrimSuffix(args, ")"), seed); err != nil {
			return out, specError("key", s, err, KeyForms)
		}
		return out, nil
	}
	if HasExpression(s) {
		t, err := ParseTemplate(s, TemplateOptions{Seed: seed, Use: Repeatable})
		if err != nil {
			return out, fmt.Errorf("key %q: %w", shortened(s), err)
		}
		out.kind, out.template, out.width = expressed, t, t.MaxLen()
		return out, nil
	}
	name, args, ok := splitCall(s)
	if !ok {
		return out, specError("key", s, errUnclosed, KeyForms)
	}
	if err := out.parse(name, s != name, splitArguments(args)); err != nil {
		return out, specError("key", s, err, KeyForms)
	}
	return out, nil
}

// parseNames parses a number of digits and a radix: there are as many keys as such
// names. If drawn anew for each event (the setting fresh), hardly any two are equal;
// otherwise they repeat with the pool.
func (k *keys) parseNames(args []string) error {
	k.kind, k.radix = uniform, 36
	if len(args) == 0 || len(args) > 2 {
		return errors.New("names takes a number of digits, and optionally a radix")
	}
	var err error
	if k.width, err = strconv.Atoi(args[0]); err != nil || k.width < 1 || k.width > 63 {
		return fmt.Errorf("%q is not a number of digits from 1 to 63", args[0])
	}
	if len(args) == 2 {
		if k.radix, err = strconv.Atoi(args[1]); err != nil || k.radix < 2 || k.radix > 36 {
			return fmt.Errorf("%q is not a radix from 2 to 36", args[1])
		}
	}
	k.n = 1
	for range k.width {
		if k.n > maxNames/uint64(k.radix) {
			return fmt.Errorf("there are more than 2^63 names of %d digits: take fewer", k.width)
		}
		k.n *= uint64(k.radix)
	}
	return nil
}

func (k *keys) parse(name string, called bool, args []string) error {
	switch name {
	case "none", "seq":
		if called {
			return fmt.Errorf("%s takes nothing in parentheses", name)
		}
		if name == "seq" {
			k.kind, k.width = seq, seqWidth
		}
		return nil
	case "names":
		return k.parseNames(args)
	case "uniform":
		if len(args) != 1 && len(args) != 2 {
			return errors.New("uniform takes the number of keys, and optionally how many digits they have")
		}
		k.kind = uniform
	case "zipf":
		if len(args) != 2 && len(args) != 3 {
			return errors.New("zipf takes the number of keys and the exponent, and optionally how many digits keys have")
		}
		k.kind = zipfian
	default:
		return fmt.Errorf("%q is not a distribution of keys", name)
	}
	n, err := units.ParseCount(args[0])
	if err != nil {
		return err
	}
	if n == 0 || n > maxKeys {
		return fmt.Errorf("%s keys are not from 1 to 2^53", args[0])
	}
	k.n, k.width = n, digits(n-1)
	if text := args[len(args)-1]; k.kind == uniform && len(args) == 2 || len(args) == 3 {
		width, err := strconv.Atoi(text)
		if err != nil || width < k.width || width > maxKeyDigits {
			return fmt.Errorf("%q is not a number of digits from %d, which the keys need, to %d", text, k.width, maxKeyDigits)
		}
		k.width = width
	}
	if k.kind == zipfian {
		s, err := strconv.ParseFloat(args[1], 64)
		if err != nil || !(s > 0) || s > 10 || math.IsInf(s, 0) {
			return fmt.Errorf("%q is not an exponent above 0 and up to 10", args[1])
		}
		k.zipf = newZipf(n, s)
	}
	return nil
}
