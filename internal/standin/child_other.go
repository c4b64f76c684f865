//go:build !linux

package standin

import (
	"os"
	"os/exec"
)

// tieToParent has nothing to tie with here: the child watches its standard
// input, which ends with the parent.
func tieToParent(*exec.Cmd) {}

// terminate asks nothing: closing the child's standard input ends it.
func terminate(*os.Process) {}
