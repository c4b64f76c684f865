package sqlite

import (
	"path/filepath"

	"carronade/internal/system"
	"carronade/target"
)

// Default is the path of the user's own store: reports.db in carronade's folder
// in the user's data folder.
func Default() (string, error) {
	dir, err := system.DataDir()
	if err != nil {
		return "", &target.Error{Doing: "find the user's data folder", Err: err, Hint: "set HOME or XDG_DATA_HOME, or give a file with --store"}
	}
	return filepath.Join(dir, "carronade", "reports.db"), nil
}
