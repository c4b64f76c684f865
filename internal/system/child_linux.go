package system

import "syscall"

// tieToParent has the kernel ask the child to end when the thread that started
// it does. A grandchild is not tied: its parent has to end it.
func tieToParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGTERM }
