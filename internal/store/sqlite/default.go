package sqlite

import (
	"path/filepath"

	"carronade/internal/system"
	"carronade/target"
)

// Default is where the user's own store is: reports.db in the folder of
// carronade in the user's data folder.
func Default() (string, error) {
	dir, err := system.DataDir()
	if err != nil {
		return "", &target.Error{Doing: "find the user's data folder", Err: err, Hint: "set HOME or XDG_DATA_HOME, or give a file with --store"}
	}
	return filepath.Join(dir, "carronade", "reports.db"), nil
}
