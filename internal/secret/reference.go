package secret

import (
	"fmt"
	"os"
	"strings"
)

// Read reads the secret of a reference, env:NAME or file:PATH, without the line
// ends at the end of a file. Any other text is returned unchanged, with
// referred false. Errors name the reference and never contain the secret; err
// is an [Unset] if the environment lacks the variable.
func Read(text string) (content string, referred bool, err error) {
	if name, ok := strings.CutPrefix(text, "env:"); ok {
		content, set := os.LookupEnv(name)
		if !set {
			return "", true, Unset(name)
		}
		return content, true, nil
	}
	if path, ok := strings.CutPrefix(text, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", true, err
		}
		return strings.TrimRight(string(data), "\r\n"), true, nil
	}
	return text, false, nil
}

// Unset is the name of an environment variable that is not set.
type Unset string

func (u Unset) Error() string {
	return fmt.Sprintf("the environment variable %s is not set", string(u))
}

// IsReference reports whether a value is the reference of a secret and not the
// secret: env:NAME or file:PATH.
func IsReference(value string) bool {
	kind, of, _ := strings.Cut(value, ":")
	return (kind == "env" || kind == "file") && of != ""
}
