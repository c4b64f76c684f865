package workload

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"carronade/internal/secret"
	"carronade/protocol"
)

const groupKeep = "what the report contains, and where it is kept"

// keepTable has the settings about storing the report, the same for every kind.
func keepTable() []Setting {
	return []Setting{
		{
			Option: protocol.Option{Name: "label", Type: protocol.List, Group: groupKeep, Help: "a label for the report (repeatable)", Word: "K=V", Show: showLabel},
			Aside:  true,
			check:  checkPair,
		},
		{
			Option:   protocol.Option{Name: "note", Group: groupKeep, Help: "a note for the report"},
			FlagOnly: true,
			check:    checkNote,
		},
		{
			Option:   protocol.Option{Name: "attach", Type: protocol.List, Group: groupKeep, Help: "a text file to attach, such as a server's configuration (repeatable)", Word: "FILE"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "store", Group: groupKeep, Help: "where to keep the report (default: your own store)", Word: "PLACE"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "no-store", Type: protocol.Bool, Group: groupKeep, Help: "do not keep the report"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "no-calibrate", Type: protocol.Bool, Group: groupKeep, Help: "at full speed: do not measure the generator's own limit"},
			FlagOnly: true,
		},
	}
}

// maxNote is the maximum length of a note, in characters.
const maxNote = 2000

func checkNote(text string) error {
	switch {
	case !utf8.ValidString(text) || strings.ContainsRune(text, 0):
		return errors.New("must be text")
	case utf8.RuneCountInString(text) > maxNote:
		return &protocol.Error{Err: fmt.Errorf("is longer than %d characters", maxNote), Hint: "--attach takes a file"}
	}
	return nil
}

// showLabel masks what looks like a secret in a label.
func showLabel(text string) string {
	var m secret.Mask
	k, v, _ := strings.Cut(text, "=")
	return k + "=" + m.Value(strings.TrimSpace(k), v)
}
