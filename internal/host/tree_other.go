//go:build !linux

package host

// A Tree watches a process and all its descendants, only on Linux.
type Tree struct{}

// OpenTree fails with ErrUnwatched.
func OpenTree(int, string) (*Tree, error) { return nil, ErrUnwatched }

// Look returns nothing on this system.
func (*Tree) Look() Look { return Look{} }

// Final returns nothing on this system.
func (*Tree) Final() Look { return Look{} }

// Alive is false here.
func (*Tree) Alive() bool { return false }

// RootEnded is true here.
func (*Tree) RootEnded() bool { return true }

// Ended is true here.
func (*Tree) Ended() bool { return true }

// Members are none here.
func (*Tree) Members() []int { return nil }

// Signal does nothing here.
func (*Tree) Signal(int, bool) {}

// Name is empty here.
func (*Tree) Name() string { return "" }

// Close does nothing here.
func (*Tree) Close() {}
