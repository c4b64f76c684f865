// Package assert has the comparisons that tests repeat: an error that must not be, a value
// that must be as wanted, a condition that must hold. Each failure names the line of the
// test, then what is wrong, then both values.
//
// OK, Value and Must end the test; all others let it go on. The last arguments of each function are
// a format and its values, as of fmt.Sprintf, which say what was compared; they may be left
// out where the values say enough.
package assert

import (
	"fmt"
	"strings"

	"github.com/google/go-cmp/cmp"
)

// TB is what the functions need of a *testing.T, which a *rapid.T has too.
type TB interface {
	Helper()
	Errorf(format string, values ...any)
	Fatalf(format string, values ...any)
}

// OK ends the test if there is an error.
func OK(t TB, err error, what ...any) {
	if err != nil {
		t.Helper()
		t.Fatalf("%s%v", prefix(what), err)
	}
}

// Value ends the test if a call returned an error, and returns its value otherwise:
//
//	text := assert.Value(os.ReadFile(path))(t)
func Value[T any](v T, err error) func(t TB, what ...any) T {
	return func(t TB, what ...any) T {
		if err != nil {
			t.Helper()
			t.Fatalf("%s%v", prefix(what), err)
		}
		return v
	}
}

// Equal compares two values with ==.
func Equal[T comparable](t TB, got, want T, what ...any) {
	if got == want {
		return
	}
	t.Helper()
	if g, ok := any(got).(string); ok {
		w := any(want).(string)
		if strings.Contains(g, "\n") || strings.Contains(w, "\n") {
			t.Errorf("%s(-want +got)\n%s", prefix(what), cmp.Diff(w, g))
			return
		}
		t.Errorf("%sgot %q, want %q", prefix(what), g, w)
		return
	}
	t.Errorf("%sgot %+v, want %+v", prefix(what), got, want)
}

// Same compares two values in depth, as cmp.Diff does.
func Same(t TB, got, want any, what ...any) {
	if diff := cmp.Diff(want, got); diff != "" {
		t.Helper()
		t.Errorf("%s(-want +got)\n%s", prefix(what), diff)
	}
}

// NoDiff fails the test with a difference that cmp.Diff found under options of its own.
func NoDiff(t TB, diff string, what ...any) {
	if diff != "" {
		t.Helper()
		t.Errorf("%s(-want +got)\n%s", prefix(what), diff)
	}
}

// ErrorHas fails the test unless there is an error whose text has this part.
func ErrorHas(t TB, err error, part string, what ...any) {
	if err == nil || !strings.Contains(err.Error(), part) {
		t.Helper()
		t.Errorf("%sgot the error %v, want one with %q", prefix(what), err, part)
	}
}

// Has fails the test for each part that a text lacks.
func Has(t TB, text string, parts ...string) {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Helper()
			t.Errorf("no %q in\n%s", part, text)
		}
	}
}

// True fails the test with a message unless the condition holds.
func True(t TB, holds bool, format string, values ...any) {
	if !holds {
		t.Helper()
		t.Errorf(format, values...)
	}
}

// Must ends the test with a message unless the condition holds.
func Must(t TB, holds bool, format string, values ...any) {
	if !holds {
		t.Helper()
		t.Fatalf(format, values...)
	}
}

// prefix returns what was compared, as the beginning of a message.
func prefix(what []any) string {
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf(what[0].(string), what[1:]...) + ": "
}
