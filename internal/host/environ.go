package host

import (
	"os"
	"slices"
	"strings"
)

// OwnEnv begins the names of variables in which this process keeps secrets of its own
// command line.
const OwnEnv = "CARRONADE_AS_"

// Environ is the environment for other programs: that of this process, without its
// own secrets.
func Environ() []string {
	return slices.DeleteFunc(os.Environ(), func(e string) bool { return strings.HasPrefix(e, OwnEnv) })
}
