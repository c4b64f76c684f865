package secret

import (
	"errors"
	"strings"
)

// A shellWord is a word of a command line.
type shellWord struct {
	span
	text string
}

// Split splits a command line into words, as a shell does without its
// expansions: blanks separate words; '...' keeps everything; "..." keeps
// everything but a backslash before a quote, a backslash or a dollar; a
// backslash keeps the next character, and joins two lines.
func Split(s string) ([]string, error) {
	words, err := splitWords(s)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, w := range words {
		out = append(out, w.text)
	}
	return out, nil
}

// splitWords is Split with the places of the words.
func splitWords(s string) ([]shellWord, error) {
	var words []shellWord
	var text strings.Builder
	from := -1 // where the word begins, possibly with an empty pair of quotes
	end := func(at int) {
		if from >= 0 {
			words = append(words, shellWord{span{from, at}, text.String()})
			text.Reset()
			from = -1
		}
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		if isBlank(c) || c == '\n' || c == '\r' {
			end(i)
			continue
		}
		if c == '\\' && (strings.HasPrefix(s[i:], "\\\n") || strings.HasPrefix(s[i:], "\\\r\n")) {
			i += strings.IndexByte(s[i:], '\n')
			continue
		}
		if from < 0 {
			from = i
		}
		switch c {
		case '\'':
			n := strings.IndexByte(s[i+1:], '\'')
			if n < 0 {
				return nil, errors.New("unclosed '")
			}
			text.WriteString(s[i+1 : i+1+n])
			i += n + 1
		case '"':
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
				text.WriteByte(s[i])
			}
		case '\\':
			if i++; i >= len(s) {
				return nil, errors.New(`nothing follows the last \`)
			}
			text.WriteByte(s[i])
		default:
			text.WriteByte(c)
		}
	}
	end(len(s))
	return words, nil
}
