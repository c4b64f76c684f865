// Command lines is carronade with an additional protocol, in a separate
// program: everything it needs is public, and nothing was forked. It has all
// the commands, flags and reports:
//
//	lines run lines://127.0.0.1:7000 --rate 50k/s --for 20s
package main

import (
	"os"

	"carronade/app"
)

func main() { os.Exit(app.Main(Kind{})) }
