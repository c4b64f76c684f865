package store

import "errors"

// What may be wrong with a store. Errors for people wrap one of them, say which
// store it is and what to do.
var (
	ErrAbsent   = errors.New("there is no store")
	ErrMissing  = errors.New("there is no such report")
	ErrExists   = errors.New("another report has the same id")
	ErrRunning  = errors.New("its run is still going on")
	ErrReadOnly = errors.New("the store is read-only")
	ErrFull     = errors.New("the disk is full")
	ErrBusy     = errors.New("other processes keep the store locked")
	ErrDamaged  = errors.New("the store is damaged")
	ErrForeign  = errors.New("it is no store of reports")
	ErrNewer    = errors.New("a newer carronade wrote the store")
)
