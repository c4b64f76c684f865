//go:build !unix

package host

import "errors"

// The errors of signals.
var (
	ErrNotPermitted = errors.New("no permission to signal it")
	ErrNoProcess    = errors.New("no such process")
)

var errNoSignals = errors.New("this system has no signals")

// Pause makes a process stand still, on Unix.
func Pause(int) error { return errNoSignals }

// Continue lets a process go on after Pause, on Unix.
func Continue(int) error { return errNoSignals }

// End ends a process at once, on Unix.
func End(int) error { return errNoSignals }

// MaySignal returns why this process may not signal another.
func MaySignal(int) error { return errNoSignals }
