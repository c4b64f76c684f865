//go:build !unix

package javatest

// lock is not kept here: two processes may both fetch, and the rename decides.
func lock(string) (unlock func(), err error) { return func() {}, nil }
