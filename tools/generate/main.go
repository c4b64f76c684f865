// Command generate writes the files that are made from the program: man pages and shell
// completions, and the Grafana dashboards of a run's exported metrics.
//
//	go run ./tools/generate manuals [FOLDER]
//	go run ./tools/generate dashboards [FOLDER]
package main

import (
	"fmt"
	"io"
	"os"
)

// A kind is one kind of files.
type kind struct {
	name, folder string // the folder is the default
	write        func(dir string) error
}

var kinds = []kind{
	{"manuals", "dist", writeManuals},
	{"dashboards", "packaging/grafana", writeDashboards},
}

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// run returns the exit code: 0, or 2 for an error.
func run(args []string, errs io.Writer) int {
	for _, k := range kinds {
		if len(args) < 1 || len(args) > 2 || args[0] != k.name {
			continue
		}
		dir := k.folder
		if len(args) == 2 {
			dir = args[1]
		}
		if err := k.write(dir); err != nil {
			fmt.Fprintf(errs, "error: write the %s: %v\n", k.name, err)
			return 2
		}
		return 0
	}
	fmt.Fprintln(errs, "error: unknown arguments\nhint: generate manuals [FOLDER], or generate dashboards [FOLDER]")
	return 2
}
