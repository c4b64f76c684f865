package sqlite

import (
	"os"
	"path/filepath"
	"runtime"

	"carronade/target"
)

// Default is where the user's own store is: reports.db in the folder of
// carronade in the user's data folder, which is $XDG_DATA_HOME or
// ~/.local/share (XDG Base Directory Specification), %LocalAppData% on Windows
// and ~/Library/Application Support on macOS.
func Default() (string, error) {
	dir := os.Getenv("XDG_DATA_HOME")
	if !filepath.IsAbs(dir) {
		var err error
		switch runtime.GOOS {
		case "windows":
			dir, err = os.UserCacheDir() // %LocalAppData%
		case "darwin":
			dir, err = os.UserConfigDir()
		default:
			dir, err = os.UserHomeDir()
			dir = filepath.Join(dir, ".local", "share")
		}
		if err != nil {
			return "", &target.Error{Doing: "find the user's data folder", Err: err, Hint: "set HOME or XDG_DATA_HOME, or give a file with --store"}
		}
	}
	return filepath.Join(dir, "carronade", "reports.db"), nil
}
