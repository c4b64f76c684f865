//go:build !linux

package host

// hostSources are empty on this system.
type hostSources struct{}

func (*hostSources) open()              {}
func (*hostSources) close()             {}
func (*hostSources) read() hostCounters { return hostCounters{} }
