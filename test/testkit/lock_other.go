//go:build !unix

package testkit

// lock does nothing here: two processes may both fetch, and the rename decides.
func lock(string) (unlock func(), err error) { return func() {}, nil }
