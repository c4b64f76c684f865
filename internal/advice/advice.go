// Package advice has the one error type with a hint, and finds the known word that a mistyped one
// may mean. It knows nothing of what failed.
//
// Its invariant: a text of an error says what is wrong, and its hint what to do, never both.
package advice

import (
	"errors"
	"fmt"
)

// An Error is a failure with a hint how to resolve it. Protocols know it as protocol.Error.
type Error struct {
	Doing string // what was tried, or where the fault is: "connect to 127.0.0.1:9092", "--rate"; "" if Err says it all
	Err   error  // why it failed
	Hint  string // what to check or to enter, one sentence
}

// Error implements error.
func (e *Error) Error() string {
	switch {
	case e.Err == nil:
		return e.Doing
	case e.Doing == "":
		return e.Err.Error()
	}
	return e.Doing + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Hint returns the outermost hint of an error; "" if it has none.
func Hint(err error) string {
	for {
		e, ok := errors.AsType[*Error](err)
		switch {
		case !ok:
			return ""
		case e.Hint != "":
			return e.Hint
		}
		err = e.Err
	}
}

// DidYouMean returns a hint with the nearest word of a list, formatted by form, such as
// "--%s"; or the other hint if none is near.
func DidYouMean(typed string, among []string, form, otherwise string) string {
	if near := Nearest(typed, among); near != "" {
		return "did you mean " + fmt.Sprintf(form, near) + "?"
	}
	return otherwise
}
