package host

import "syscall"

// DiesWithParent reports whether the kernel asks a Child to end (TERM) when this
// process was killed.
const DiesWithParent = true

// tieToParent makes the kernel send TERM to the child when the thread that
// started it ends. This does not apply to grandchildren: their parent must end
// them.
func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
