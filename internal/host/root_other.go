//go:build !linux

package host

import "io/fs"

func hostRoot() fs.FS { return nil }
