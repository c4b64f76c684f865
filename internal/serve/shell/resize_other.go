//go:build !unix

package shell

// onResize does nothing: this system has no signal for a changed size.
func onResize(func()) (stop func()) { return func() {} }
