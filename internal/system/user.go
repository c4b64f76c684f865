package system

import (
	"os"
	"path/filepath"
	"runtime"
)

// DataDir is the folder of the user's own data, in which every program has a
// folder of its own: $XDG_DATA_HOME or ~/.local/share (XDG Base Directory
// Specification), %LocalAppData% on Windows and ~/Library/Application Support
// on macOS. What is kept there belongs to this machine, so on Windows it is not
// the folder that follows a user from one to the next.
func DataDir() (string, error) {
	if dir := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(dir) { // another path is to be ignored
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

// Shell is the command line by which the system's shell runs a line.
func Shell(line string) []string {
	if runtime.GOOS == "windows" {
		return []string{"cmd", "/c", line}
	}
	return []string{"/bin/sh", "-c", line}
}
