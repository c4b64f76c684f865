package sqlite

import (
	"os"
	"path/filepath"

	"carronade/internal/host"
	"carronade/protocol"
)

// Default is the path of the user's own store: reports.db in carronade's folder
// in the user's data folder.
func Default() (string, error) {
	dir, err := host.DataDir()
	if err != nil {
		return "", &protocol.Error{Doing: "find the user's data folder", Err: err, Hint: "set HOME or XDG_DATA_HOME, or give a file with --store"}
	}
	return filepath.Join(dir, "carronade", "reports.db"), nil
}

// Files returns the files of the store at a path: a process that may only open these, and make none
// next to them, can use it. It makes the files of the log if they are missing. While another process
// has the store open, they stay: SQLite removes them when the last one closes it.
func Files(path string) []string {
	if _, err := os.Stat(path); err != nil {
		return nil
	}
	paths := []string{path, path + "-wal", path + "-shm"}
	for _, log := range paths[1:] {
		if f, err := os.OpenFile(log, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
			f.Close()
		}
	}
	return paths
}
