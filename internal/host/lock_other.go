//go:build !unix

package host

import "os"

// TryLock always succeeds on this system: users must not let two programs use what it
// protects, such as one revision that both build.
func TryLock(*os.File, bool) (bool, error) { return true, nil }

// CloseLocked closes a file.
func CloseLocked(f *os.File) error { return f.Close() }
