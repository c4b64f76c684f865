//go:build !unix

package host

import "errors"

// KeepFromChildren makes an open file descriptor one that processes started from now on do
// not inherit. Here it always fails: processes do not inherit descriptors by number.
func KeepFromChildren(uintptr) error {
	return errors.New("this operating system has no inherited file descriptors")
}
