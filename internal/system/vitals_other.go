//go:build !linux

package system

// hostSources are empty on this system.
type vitalSources struct{}

func (*vitalSources) open()        {}
func (*vitalSources) close()       {}
func (*vitalSources) read() vitals { return vitals{} }
