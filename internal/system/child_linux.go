package system

import "syscall"

// tieToParent makes the kernel send TERM to the child when the thread that
// started it ends. This does not apply to grandchildren: their parent must end
// them.
func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
