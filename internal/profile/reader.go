package profile

import (
	"errors"
	"fmt"
)

// A Sink takes what a reader finds. *Sampler is one.
type Sink interface {
	Record(*Record)
	Batch(Batch)
}

// ErrEnough ends a reader without an error: a Sink's owner has what it wants.
var ErrEnough = errors.New("enough")

// An Error says where an input is invalid.
type Error struct {
	Where string // such as "line 7"
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Where, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// ErrIncomplete is in the errors of an input that ends within a record. What was read of the record was
// valid so far, or cannot be judged.
var ErrIncomplete = errors.New("the input ends within a record")

// incomplete adds ErrIncomplete to an error, and leaves its text.
type incomplete struct{ error }

func (e incomplete) Unwrap() error { return e.error }

func (incomplete) Is(err error) bool { return err == ErrIncomplete }

// A Limit is a Sink that may have enough. Readers then return ErrEnough.
type Limit interface{ Full() bool }

// full reports whether a sink has enough.
func full(to Sink) bool {
	l, ok := to.(Limit)
	return ok && l.Full()
}
