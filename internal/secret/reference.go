package secret

import (
	"fmt"
	"os"
	"strings"
)

// Read reads what a reference, env:NAME or file:PATH, refers to; line ends
// after the text of a file are no part of it. A text that is no reference is
// returned as it is, with referred false. Errors name the reference and never
// what it refers to; err is an [Unset] where the environment lacks it.
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

// Unset is the name of an environment variable that is not there.
type Unset string

func (u Unset) Error() string {
	return fmt.Sprintf("the environment variable %s is not set", string(u))
}
