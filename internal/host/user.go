package host

import (
	"os"
	"path/filepath"
	"runtime"
)

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
