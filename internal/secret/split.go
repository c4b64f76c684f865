package secret

import (
	"errors"
	"strings"
)

// Split splits a command line into words, as a shell does without its
// expansions: blanks separate words; '...' keeps everything; "..." keeps
// everything but a backslash before a quote, a backslash or a dollar; a
// backslash keeps the next character, and joins two lines.
func Split(s string) ([]string, error) {
	var words []string
	var word []byte
	inWord, quote := false, byte(0) // the quote that is open
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case quote == '\'' && c != '\'', quote == '"' && c != '"' && c != '\\':
			word = append(word, c)
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && strings.IndexByte(" \t\n\r", c) >= 0:
			if inWord {
				words, word, inWord = append(words, string(word)), word[:0], false
			}
		case quote == 0 && (c == '\'' || c == '"'):
			inWord, quote = true, c
		case c != '\\':
			word, inWord = append(word, c), true
		case quote == 0 && (strings.HasPrefix(s[i:], "\\\n") || strings.HasPrefix(s[i:], "\\\r\n")):
			i += strings.IndexByte(s[i:], '\n')
		case i+1 == len(s):
			return nil, errors.New(`nothing follows the last \`)
		case quote == 0 || strings.IndexByte(`"\$`, s[i+1]) >= 0:
			i++
			word, inWord = append(word, s[i]), true
		default:
			word = append(word, c)
		}
	}
	if quote != 0 {
		return nil, errors.New("unclosed " + string(quote))
	}
	if inWord {
		words = append(words, string(word))
	}
	return words, nil
}
