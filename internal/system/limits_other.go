//go:build !linux

package system

import (
	"errors"
	"os/exec"
)

// limits need a control group, which only Linux has.
type limits struct{}

func newLimits(string, int64, float64) (*limits, error) {
	return nil, errors.New("this operating system has no control groups")
}

func (*limits) apply(*exec.Cmd)   {}
func (*limits) outOfMemory() bool { return false }
func (*limits) kill()             {}
func (*limits) remove()           {}
