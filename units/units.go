// Package units reads and prints the quantities that people type and read:
// durations, sizes, rates, counts and shares.
//
// It answers for one grammar everywhere: what one flag takes, a workload file
// and a script take as well, and every text that a Format function prints is
// read back by its Parse function to within the digits that were printed. It
// refuses to know what a quantity is for: a rate of zero is a fine number here,
// and somebody else's error.
//
// Numbers are plain digits, with _ between digits, a fraction or an exponent
// where wanted (50_000, 1.5, 1e6). They are computed exactly and rounded once,
// so 1.1GB is 1,100,000,000 bytes and not one less. Negative numbers, NaN,
// overflow and empty texts are errors, and each error names the text, says what
// was expected and gives an example.
//
// All functions are safe for concurrent use.
package units

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Bounds of a typed number. They keep an exponent such as 1e999999999 from
// costing memory before it is refused; any quantity here is far inside.
const (
	maxDigits   = 40
	maxExponent = 40
)

var (
	errEmpty     = errors.New("is empty")
	errNegative  = errors.New("is negative")
	errNotNumber = errors.New("does not begin with a number")
	errRange     = errors.New("is out of range")
)

// An Error says why a text was refused. It is the type of every error of this
// package, so that who reads sizes within a larger form can say what form that is
// instead of Want.
type Error struct {
	Kind string // what was to be read: "duration", "size", "rate", "count" or "share"
	Text string // cut at 60 bytes
	Why  error  // the rest of a sentence that begins with the text: "is empty"
	Want string // what is expected, with examples
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %q %v: want %s", e.Kind, e.Text, e.Why, e.Want)
}

func (e *Error) Unwrap() error { return e.Why }

func wrong(kind, text string, why error, want string) error {
	const most = 60
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "..."
	}
	return &Error{Kind: kind, Text: text, Why: why, Want: want}
}

func notUnit(unit, kind string) error {
	const most = 20
	if len(unit) > most {
		unit = strings.ToValidUTF8(unit[:most], "") + "..."
	}
	return fmt.Errorf("has %q, which is not a unit of a %s", unit, kind)
}

// number reads the number that s begins with and returns it exactly, with what
// follows it (blanks between the two removed).
func number(s string) (n *big.Rat, rest string, err error) {
	s = strings.TrimSpace(s)
	switch {
	case s == "":
		return nil, "", errEmpty
	case s[0] == '-':
		return nil, "", errNegative
	}
	text, digits, i := make([]byte, 0, len(s)), 0, 0
	run := func() {
		for ; i < len(s); i++ {
			if isDigit(s, i) {
				text = append(text, s[i])
				digits++
			} else if s[i] != '_' || i == 0 || !isDigit(s, i-1) || !isDigit(s, i+1) {
				return
			}
		}
	}
	run()
	if i < len(s) && s[i] == '.' && (digits > 0 || isDigit(s, i+1)) {
		text = append(text, '.')
		i++
		run()
	}
	if digits == 0 {
		return nil, "", errNotNumber
	}
	if digits > maxDigits {
		return nil, "", errRange
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		// An e that no digit follows belongs to a unit.
		if isDigit(s, j) {
			exp := 0
			for k := j; isDigit(s, k); k++ {
				if exp = exp*10 + int(s[k]-'0'); exp > maxExponent {
					return nil, "", errRange
				}
				j = k + 1
			}
			text = append(text, s[i:j]...)
			i = j
		}
	}
	n, ok := new(big.Rat).SetString(string(text))
	if !ok {
		return nil, "", errNotNumber
	}
	return n, strings.TrimSpace(s[i:]), nil
}

func isDigit(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

// round returns the nearest whole number, halves away from zero; n >= 0.
func round(n *big.Rat) *big.Int {
	num := new(big.Int).Lsh(n.Num(), 1)
	num.Add(num, n.Denom())
	return num.Quo(num, new(big.Int).Lsh(n.Denom(), 1))
}

func scaled(n *big.Rat, by int64) *big.Rat { return n.Mul(n, new(big.Rat).SetInt64(by)) }
