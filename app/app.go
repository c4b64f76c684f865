// Package app is the public API of the program: Main, with the kinds of target
// that it shall have, and those that carronade has. It only starts the command
// line, and knows no kind itself.
//
// A program with an additional protocol has
//
//	func main() { os.Exit(app.Main(append(app.Kinds(), lines.Kind{})...)) }
//
// and gets every command, flag, report and comparison for it.
package app

import (
	"carronade/internal/cli"
	"carronade/protocol"
)

// Main runs the program's command line, os.Args, and returns its exit code:
// see `carronade help exit-codes`. It uses the process's standard streams and
// signals, and must be called only once.
func Main(kinds ...protocol.Kind) int { return cli.OS(kinds).Main() }

// Kinds returns the kinds of target of the carronade program, the most used
// first.
func Kinds() []protocol.Kind { return cli.Kinds() }
