package protocol

import (
	"errors"

	"carronade/internal/secret"
)

// ReadSecret resolves an option's reference to a secret, env:NAME or file:PATH. Errors
// contain the reference, but never the secret; a text that is not a reference is taken
// for a secret and is not repeated.
func ReadSecret(option, ref string) (string, error) {
	text, referred, err := secret.Read(ref)
	failed := &Error{Doing: "read --" + option, Err: err}
	var unset secret.Unset
	switch {
	case !referred:
		failed.Err = errors.New("a secret must not be on the command line, where others can see it")
		failed.Hint = "give --" + option + " env:NAME or --" + option + " file:PATH"
	case errors.As(err, &unset):
		failed.Hint = "export " + string(unset) + "=... first"
	case err != nil:
		failed.Hint = "the file must hold the secret and nothing else"
	default:
		return text, nil
	}
	return "", failed
}
