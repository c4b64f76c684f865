package secret

import (
	"strings"
	"unicode/utf8"
)

// stems are texts of which every match of a pattern has one, or both of a pair. Most
// lines of a log have none, and the patterns cost some hundred times as much.
type stems [][2]string

var (
	wordStems = stems{
		{"pass"},
		{"pw"},
		{"kennwort"},
		{"secret"},
		{"token"},
		{"key"},
		{"cred"},
		{"auth"},
		{"cookie"},
		{"jaas"},
		{"user", "info"},
		{"superdigest"},
		{"confluent"},
		{"webhook"},
		{"connection", "string"},
	}
	authStems   = stems{{"auth"}}
	schemeStems = stems{{"bearer"}, {"apikey"}}
)

// A lowered is a text in small letters, to look for stems in.
type lowered string

// folded are the characters beyond ASCII that regular expressions take for a letter of
// ASCII if case does not matter: the long s and the sign of kelvin.
var folded = strings.NewReplacer("\u017f", "s", "\u212a", "k")

func lower(s string) lowered {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return lowered(strings.ToLower(folded.Replace(s)))
		}
	}
	return lowered(strings.ToLower(s))
}

// mayHave reports whether the text may match a pattern with these stems.
func (l lowered) mayHave(all stems) bool {
	for _, pair := range all {
		if strings.Contains(string(l), pair[0]) && strings.Contains(string(l), pair[1]) {
			return true
		}
	}
	return false
}
