// Package units parses and prints the quantities that users enter and read: durations,
// sizes, rates, counts and shares.
//
// The grammar is the same everywhere: flags, workload files and scripts accept the same
// texts, and every text that a Format function prints can be parsed by its Parse
// function to within the printed digits. The package does not depend on what a quantity
// is used for: a rate of zero is valid here, and the caller checks whether it makes
// sense.
//
// One rule holds for letters: in counts and rates, k, M, G and T are powers of 1000; a
// size has KiB, MiB, GiB and TiB for powers of 1024 and kB, MB, GB and TB for powers of
// 1000. A text that may mean two quantities is an error that shows both spellings.
//
// Numbers are plain digits, with _ between digits, and optionally a fraction or an
// exponent (50_000, 1.5, 1e6). They are computed exactly and rounded once, so 1.1GB is
// exactly 1,100,000,000 bytes. Negative numbers, NaN, overflow and empty texts are
// errors, and each error names the text, says what was expected and gives an example.
//
// All functions are safe for concurrent use.
package units

import (
	"errors"
	"fmt"
	"math/big"
	"strings"
)

// Bounds of an entered number. They keep an exponent such as 1e999999999 from using
// memory before it is refused; all quantities here are far smaller.
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

// An Error says why a text was refused. It is the type of every error of this package,
// so that a caller that parses sizes within a larger form can describe that form
// instead of Want.
type Error struct {
	Kind string // what was parsed: "duration", "size", "rate", "count" or "share"
	Text string // truncated to 60 bytes
	Why  error  // continues a sentence that begins with the text: "is empty"
	Want string // what is expected, with examples

	Ambiguous bool // Why shows the two spellings that are not
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s %q %v: want %s", e.Kind, e.Text, e.Why, e.Want)
}

func (e *Error) Unwrap() error { return e.Why }

func newError(kind, text string, why error, want string) error {
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

// number parses the number at the beginning of s and returns it exactly, with the rest
// (blanks between the two removed).
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
		// An e without a digit after it belongs to a unit.
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

// ambiguous returns the error for a text that may mean two quantities.
func ambiguous(kind, text, one, two string) error {
	return &Error{Kind: kind, Text: text, Why: fmt.Errorf("may mean %s or %s", one, two), Want: "one of these two", Ambiguous: true}
}

// withoutUnit returns the text of the number before its unit.
func withoutUnit(s, unit string) string {
	return strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(s), unit))
}

func isDigit(s string, i int) bool { return i < len(s) && s[i] >= '0' && s[i] <= '9' }

// round returns the nearest integer, halves away from zero; n >= 0.
func round(n *big.Rat) *big.Int {
	num := new(big.Int).Lsh(n.Num(), 1)
	num.Add(num, n.Denom())
	return num.Quo(num, new(big.Int).Lsh(n.Denom(), 1))
}

func scaled(n *big.Rat, by int64) *big.Rat { return n.Mul(n, new(big.Rat).SetInt64(by)) }
