// Package capture reads recorded traffic: files of records and of protocols' bytes, captures
// of packets, whose TCP connections it puts together, and what
// targets read. It turns them into plain samples (package fit) and into counts of what a
// protocol's requests are made of. It does not know what is fitted to them, and it opens no
// connection.
//
// What it reads was written by others, so each reader bounds the memory that a line, a frame
// or a body may take, and says where the input is invalid.
package capture

import (
	"errors"
	"fmt"

	"carronade/internal/fit"
)

// A Sink takes what a reader finds. *fit.Sampler is one.
type Sink interface {
	Record(*fit.Record)
	Batch(fit.Batch)
}

// ErrEnough ends a reader without an error: a Sink's owner has what it wants.
var ErrEnough = errors.New("enough")

// An Error says where an input is invalid.
type Error struct {
	Where string // "line 7", "byte 1024", "packet 3"
	Err   error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("%s: %v", e.Where, e.Err) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// A Limit is a Sink that may have enough. Readers then return ErrEnough.
type Limit interface{ Full() bool }

// full reports whether a sink has enough.
func full(to Sink) bool {
	l, ok := to.(Limit)
	return ok && l.Full()
}
