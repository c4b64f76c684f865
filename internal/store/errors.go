package store

import "errors"

// What may be wrong with a store. Errors for users wrap one of them, and say
// which store it is and what to do.
var (
	ErrAbsent   = errors.New("the store does not exist")
	ErrMissing  = errors.New("no such report")
	ErrExists   = errors.New("another report has the same id")
	ErrRunning  = errors.New("its run has not ended")
	ErrReadOnly = errors.New("the store is read-only")
	ErrFull     = errors.New("the disk is full")
	ErrBusy     = errors.New("other processes keep the store locked")
	ErrDamaged  = errors.New("the store is damaged")
	ErrForeign  = errors.New("it is not a store of reports")
	ErrNewer    = errors.New("a newer carronade wrote the store")
	ErrTooOld   = errors.New("the server is too old for reports")
)

// A reason is one of the errors above in a sentence that names what is missing.
type reason struct {
	text string
	is   error
}

func (r reason) Error() string { return r.text }
func (r reason) Unwrap() error { return r.is }
