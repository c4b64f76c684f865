// Carronade fires events at the systems that take events in, and says, with
// evidence, what they can take.
package main

import (
	"os"

	"carronade/app"
	"carronade/target/all"
)

func main() { os.Exit(app.Main(all.Kinds()...)) }
