package kafka

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/twmb/franz-go/pkg/kerr"
)

// notAppended reports whether a broker answers an error before it reads the
// batch: because it does not know the partition, or does not lead it.
func notAppended(code int16) bool {
	switch code {
	case kerr.UnknownTopicOrPartition.Code, kerr.LeaderNotAvailable.Code, kerr.NotLeaderForPartition.Code, kerr.UnknownTopicID.Code:
		return true
	}
	return false
}

// errorText returns the name of a broker's error and the broker's message.
func errorText(code int16, message []byte) string {
	name := fmt.Sprintf("error %d", code)
	text := printable(message)
	if e := kerr.TypedErrorForCode(code); e != nil {
		name = e.Message
		if text == "" {
			text = e.Description
		}
	}
	if text == "" {
		return name
	}
	return name + ": " + text
}

// maxMessage bounds what is kept of a broker's message, in bytes.
const maxMessage = 400

// printable returns a broker's message as it may be shown: bounded, and without
// control characters for a terminal.
func printable(b []byte) string {
	cut := len(b) > maxMessage
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(string(b[:min(len(b), maxMessage)]), ""))
	if cut {
		text += "..."
	}
	return text
}
