package secret

import (
	"errors"
	"strings"
)

// Split splits a command line into words, as a shell does without its
// expansions: blanks separate words; '...' keeps everything; "..." keeps
// everything but a backslash before a quote, a backslash or a dollar; a
// backslash keeps the next character.
func Split(s string) ([]string, error) {
	var words []string
	var word strings.Builder
	in := false // a word has begun, possibly with an empty pair of quotes
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case ' ', '\t', '\n', '\r':
			if in {
				words = append(words, word.String())
				word.Reset()
				in = false
			}
		case '\'':
			end := strings.IndexByte(s[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("unclosed '")
			}
			word.WriteString(s[i+1 : i+1+end])
			i += end + 1
			in = true
		case '"':
			in = true
			for i++; ; i++ {
				if i >= len(s) {
					return nil, errors.New(`unclosed "`)
				}
				if s[i] == '"' {
					break
				}
				if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(`"\$`, s[i+1]) >= 0 {
					i++
				}
				word.WriteByte(s[i])
			}
		case '\\':
			if i++; i >= len(s) {
				return nil, errors.New(`nothing follows the last \`)
			}
			word.WriteByte(s[i])
			in = true
		default:
			word.WriteByte(c)
			in = true
		}
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}
