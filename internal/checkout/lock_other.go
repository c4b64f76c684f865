//go:build !unix

package checkout

import "os"

// try always succeeds here: two runs at once must not build the same revision.
func try(*os.File, bool) (bool, error) { return true, nil }
