//go:build !linux

package system

import "io/fs"

func hostRoot() fs.FS { return nil }
