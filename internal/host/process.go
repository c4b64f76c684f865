package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// An Identity identifies a process so that another one can find out later
// whether it is still there: process numbers are reused.
type Identity struct {
	// Host identifies the machine since it started, and the namespace of PID: a
	// container has its own.
	Host  string `json:"host"`
	PID   int    `json:"pid"`
	Start string `json:"start,omitempty"` // when the process began, in the system's units; "" if unknown
}

// Self is this process.
func Self() Identity { return self() }

// Identify returns the identity of a running process of this machine; false if
// there is none.
func Identify(pid int) (Identity, bool) {
	start, ok := startOf(pid)
	return Identity{Host: self().Host, PID: pid, Start: start}, ok
}

// Alive reports whether the process is still running. For a process of another
// host that is not known.
func (id Identity) Alive() (alive, known bool) {
	me := self()
	if id.Host != me.Host || id.Host == "" {
		return false, false
	}
	if id.PID == me.PID {
		return id.Start == me.Start, true
	}
	start, ok := startOf(id.PID)
	return ok && start == id.Start, true
}

// The exit codes of the program, as `help exit-codes` describes them.
const (
	ExitOK          = 0
	ExitBroken      = 1   // done, but a requested limit does not hold, or the system took nothing
	ExitFailed      = 2   // the command failed
	ExitUntrusted   = 3   // done, but the generator was the limit, the system ended, or a fault left no connection
	ExitCannotTell  = 4   // a gate or a limit cannot tell: too little history, too noisy, or not read
	ExitInterrupted = 130 // interrupted; the partial report is kept and marked
)

// WorseExit returns the exit code that takes precedence: interrupted, then failed, then broken
// limit, then not trustworthy, then cannot tell.
func WorseExit(a, b int) int {
	order := []int{ExitOK, ExitCannotTell, ExitUntrusted, ExitBroken, ExitFailed, ExitInterrupted}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// OwnEnv begins the names of variables in which this process keeps secrets of its own
// command line.
const OwnEnv = "CARRONADE_AS_"

// Environ is the environment for other programs: that of this process, without its
// own secrets.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, OwnEnv) })
}

// Reason returns only the cause of a file's error, without the operation and
// the path, which the message already has.
func Reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}

// DataDir is the folder of the user's data, in which every program has its own
// folder: $XDG_DATA_HOME or ~/.local/share (XDG Base Directory Specification),
// %LocalAppData% on Windows and ~/Library/Application Support on macOS. The
// data belong to this machine, so on Windows it is not the roaming folder.
func DataDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) { // the specification says to ignore other paths
		return dir, nil
	}
	switch runtime.GOOS {
	case "windows":
		return os.UserCacheDir() // %LocalAppData%
	case "darwin":
		return os.UserConfigDir()
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".local", "share"), nil
}

// Shell returns the command line with which the system's shell runs a line.
func Shell(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/c", line}
	}
	return []string{"/bin/sh", "-c", line}
}
