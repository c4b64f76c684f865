package workload

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"carronade/internal/secret"
	"carronade/target"
)

const groupKeep = "what the report carries, and where it is kept"

// keepTable is the part of the table about keeping the report. It is the same
// for every kind of target.
func keepTable() []Setting {
	return []Setting{
		{
			Option: target.Option{Name: "label", Type: target.List, Group: groupKeep, Help: "a name for the report to carry (repeatable)", Word: "K=V", Show: showLabel},
			Aside:  true,
			check:  checkPair,
		},
		{
			Option:   target.Option{Name: "note", Group: groupKeep, Help: "a sentence for the report to carry"},
			FlagOnly: true,
			check:    checkNote,
		},
		{
			Option:   target.Option{Name: "attach", Type: target.List, Group: groupKeep, Help: "a text file to carry, such as a server's configuration (repeatable)", Word: "FILE"},
			FlagOnly: true,
		},
		{
			Option:   target.Option{Name: "store", Group: groupKeep, Help: "keep the report there, in a file or at an address; left out: in your own", Word: "PLACE"},
			FlagOnly: true,
		},
		{
			Option:   target.Option{Name: "no-store", Type: target.Bool, Group: groupKeep, Help: "keep it nowhere"},
			FlagOnly: true,
		},
		{
			Option:   target.Option{Name: "no-calibrate", Type: target.Bool, Group: groupKeep, Help: "at full speed: do not measure what this machine generates by itself"},
			FlagOnly: true,
		},
	}
}

// mostNote is how long a note may be, in letters.
const mostNote = 2000

func checkNote(text string) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return errors.New("must be text")
	case utf8.RuneCountInString(text) > mostNote:
		return &Error{Err: fmt.Errorf("is longer than %d letters", mostNote), Hint: "--attach carries a file"}
	}
	return nil
}

// showLabel is a label without what looks like a secret.
func showLabel(text string) string {
	var m secret.Mask
	k, v, _ := strings.Cut(text, "=")
	return k + "=" + m.Value(strings.TrimSpace(k), v)
}
