//go:build !unix

package javatest

// lock does nothing here: two processes may both fetch, and the rename decides.
func lock(string) (unlock func(), err error) { return func() {}, nil }
