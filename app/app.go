// Package app is the public face of the program: Main with the kinds of target
// that it shall have. It answers for nothing but starting the command line, and
// knows no kind.
//
// Somebody with a protocol of his own writes
//
//	func main() { os.Exit(app.Main(append(all.Kinds(), lines.Kind{})...)) }
//
// and has every command, flag, report and comparison for it.
package app

import (
	"carronade/internal/cli"
	"carronade/target"
)

// Main runs the program's command line, os.Args, and returns its exit code:
// see `carronade help exit-codes`. It takes the process's standard streams and
// signals, and is called once.
func Main(kinds ...target.Kind) int { return cli.OS(kinds).Main() }
