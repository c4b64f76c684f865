package secret

import (
	"fmt"
	"os"
	"strings"

	"carronade/internal/place"
)

// Read reads the secret of a reference, env:NAME or file:PATH, without the line
// ends at the end of a file. Any other text is returned unchanged, with
// referred false. Errors name the reference and never contain the secret; err
// is an [Unset] if the environment lacks the variable.
func Read(text string) (content string, referred bool, err error) {
	ref := place.Reference(text)
	if ref.Kind == place.Text {
		return text, false, nil
	}
	content, err = ReadFrom(ref)
	return content, true, err
}

// ReadFrom is Read for the place that a reference names.
func ReadFrom(ref place.Place) (content string, err error) {
	switch ref.Kind {
	case place.Variable:
		content, set := os.LookupEnv(ref.Value)
		if !set {
			return "", Unset(ref.Value)
		}
		return content, nil
	case place.File:
		data, err := place.ReadFile(ref.Value)
		return strings.TrimRight(string(place.TextOf(data)), "\r\n"), err
	default:
		return ref.Value, nil
	}
}

// Unset is the name of an environment variable that is not set.
type Unset string

func (u Unset) Error() string {
	return fmt.Sprintf("the environment variable %s is not set", string(u))
}

// IsReference reports whether a value is the reference of a secret and not the
// secret: env:NAME or file:PATH.
func IsReference(value string) bool {
	ref := place.Reference(value)
	return ref.Kind != place.Text && ref.Value != ""
}
