//go:build !unix

package checkout

// shell runs a build's command.
var shell = []string{"cmd", "/c"}
