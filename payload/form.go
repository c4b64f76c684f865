package payload

import (
	"errors"
	"fmt"
	"strings"

	"carronade/units"
)

// The forms that users may enter, for help and for errors.
const (
	SizeForms = "BYTES, such as 100, 1KiB (1024) or 1kB (1000); MIN-MAX, such as 100-2000; " +
		"weighted(SIZE:WEIGHT,...), such as weighted(100:70,1KiB:30); lognormal(MEDIAN,SIGMA), such as lognormal(1KiB,0.5); " +
		"quantiles(MIN,...,MAX), sizes at equal steps of probability, such as quantiles(60,80,100,500)"
	KeyForms     = "none; seq; uniform(KEYS[,DIGITS]), such as uniform(1000); zipf(KEYS,EXPONENT[,DIGITS]), such as zipf(1000,1.1), or zipf(1000,1.1,36) for keys of 36 bytes; names(DIGITS[,RADIX]), such as names(12), drawn from all such names; number(RADIX,EXPRESSION[,TEXT]), the digits of a number after a text; TEXT with expressions, such as user-${rnd.nextInt(1000)}"
	PayloadForms = "random; text; zero; monotonic; letters; letters(N), of which N differ, such as letters(1); chars(SET), such as chars(a-z0-9.), drawn from these characters; compressible(RATIO), such as compressible(0.25); " +
		"ring(SIZE[,EXPRESSION],SEED) or ring(SIZE[,EXPRESSION],file:PATH), pieces of a ring of bytes, at the offset that the expression gives, as mongoose sends them; " +
		`file:PATH; file(PATH[,random][,delim=TEXT][,match=REGEXP]), such as file(lines.txt,random) or file(blobs.bin,delim=\0), and match= at the end: its commas and blanks are the expression's`
)

// A settingError is the error of one text of a Spec.
type settingError struct {
	setting string
	err     error
}

func (e *settingError) Error() string { return e.err.Error() }
func (e *settingError) Unwrap() error { return e.err }

// SettingOf is which text of a Spec an error of New is about: size, payload, key or header.
func SettingOf(err error) string {
	if e, ok := errors.AsType[*settingError](err); ok {
		return e.setting
	}
	return ""
}

// specError returns the error of a specification: its text, the reason, and the valid
// forms.
func specError(what, text string, why error, forms string) error {
	short := shortened(text)
	var number *units.Error
	if errors.As(why, &number) && number.Ambiguous {
		forms = number.Want
	}
	switch {
	case number != nil && number.Text == text:
		// The number is the complete text, which is printed only once.
		return fmt.Errorf("%s %q %w: want %s", what, short, number.Why, forms)
	case number != nil:
		return fmt.Errorf("%s %q: %s %q %w: want %s", what, short, number.Kind, number.Text, number.Why, forms)
	}
	return fmt.Errorf("%s %q: %w: want %s", what, short, why, forms)
}

// shortened returns the beginning of a text, for an error.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}

var errUnclosed = errors.New("it has no closing )")

// splitCall splits "name(a,b)". A text without parentheses is only a name.
func splitCall(s string) (name, args string, ok bool) {
	name, rest, ok := strings.Cut(s, "(")
	if !ok {
		return s, "", true
	}
	args, ok = strings.CutSuffix(rest, ")")
	return strings.TrimSpace(name), args, ok
}

// splitArguments splits at commas; it returns an empty slice for no arguments.
func splitArguments(args string) []string {
	if strings.TrimSpace(args) == "" {
		return nil
	}
	parts := strings.Split(args, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}
