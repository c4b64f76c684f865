package scenario

import (
	"fmt"
	"io"

	"carronade/internal/host"
	"carronade/internal/place"
	"carronade/units"
)

// MostSource is the size of the largest script, in bytes.
const MostSource = 1 << 20

// LeastMemory is the least memory of a script, in bytes.
const LeastMemory = 32 << 20

// ErrLarge is the error of ReadSource about a file that is larger than MostSource.
var ErrLarge = fmt.Errorf("it is larger than %s", units.FormatSize(MostSource))

// ReadSource reads the file of a script. Its error is without the path.
func ReadSource(path string) (string, error) {
	file, err := place.Open(path)
	if err != nil {
		return "", host.Reason(err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MostSource+1))
	switch {
	case err != nil:
		return "", host.Reason(err)
	case len(text) > MostSource:
		return "", ErrLarge
	}
	return string(text), nil
}
