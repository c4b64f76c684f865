// Carronade is a load tester for systems that take in events: it sends events
// and reports, with evidence, how the system coped.
package main

import (
	"os"

	"carronade/app"
)

func main() { os.Exit(app.Main(app.Kinds()...)) }
