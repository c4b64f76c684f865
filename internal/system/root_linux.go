package system

import (
	"io/fs"
	"os"
)

func hostRoot() fs.FS { return os.DirFS("/") }
