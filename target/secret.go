package target

import (
	"errors"
	"fmt"
	"os"
	"strings"
)

// ReadSecret resolves a reference to a secret, env:NAME or file:PATH, that an
// option was given. Errors name the reference, and never what it refers to; a
// text that is no reference is a secret itself and is not repeated.
func ReadSecret(option, ref string) (string, error) {
	doing := "read --" + option
	if name, ok := strings.CutPrefix(ref, "env:"); ok {
		secret, set := os.LookupEnv(name)
		if !set {
			return "", &Error{Doing: doing, Err: fmt.Errorf("the environment has no variable %s", name), Hint: "export " + name + "=... first"}
		}
		return secret, nil
	}
	if path, ok := strings.CutPrefix(ref, "file:"); ok {
		data, err := os.ReadFile(path)
		if err != nil {
			return "", &Error{Doing: doing, Err: err, Hint: "the file must hold the secret and nothing else"}
		}
		return strings.TrimRight(string(data), "\r\n"), nil
	}
	return "", &Error{
		Doing: doing, Err: errors.New("secrets are not taken from the command line, where others can see them"),
		Hint: "give --" + option + " env:NAME or --" + option + " file:PATH",
	}
}
