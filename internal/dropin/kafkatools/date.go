package kafkatools

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// A dateFormat is a parsed pattern of java.text.SimpleDateFormat.
type dateFormat []datePart

// A datePart is a field letter with its width, or literal text.
type datePart struct {
	letter byte // 0 for text
	width  int
	text   string
}

// unsupportedLetters are letters that Java supports and this package does not.
var unsupportedLetters = map[byte]string{
	'G': "eras", 'Y': "week years", 'w': "weeks", 'W': "weeks", 'F': "weeks of a month", 'L': "months that stand alone",
}

// parseDate parses a pattern. Errors about what Java rejects, too, have Java's
// wording.
func parseDate(pattern string) (dateFormat, error) {
	var f dateFormat
	var text strings.Builder
	flush := func() {
		if text.Len() > 0 {
			f = append(f, datePart{text: text.String()})
			text.Reset()
		}
	}
	for i := 0; i < len(pattern); i++ {
		c := pattern[i]
		switch {
		case c == '\'':
			n, err := quoted(pattern[i:], &text)
			if err != nil {
				return nil, err
			}
			i += n - 1
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			if what, ok := unsupportedLetters[c]; ok {
				return nil, fmt.Errorf("--date-format: %s are not supported (%q)", what, c)
			}
			if !strings.ContainsRune("yMdHhkKmsSaEDuzZX", rune(c)) {
				return nil, fmt.Errorf("Illegal pattern character '%c'", c)
			}
			n := 1
			for i+n < len(pattern) && pattern[i+n] == c {
				n++
			}
			if c == 'X' && n > 3 {
				return nil, fmt.Errorf("invalid ISO 8601 format: length=%d", n)
			}
			flush()
			f = append(f, datePart{letter: c, width: n})
			i += n - 1
		default:
			text.WriteByte(c)
		}
	}
	flush()
	return f, nil
}

// quoted reads text between quotes, in which two quotes mean one, and returns its
// length.
func quoted(s string, text *strings.Builder) (int, error) {
	if strings.HasPrefix(s, "''") {
		text.WriteByte('\'')
		return 2, nil
	}
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '\'':
			text.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			text.WriteByte('\'')
			i++
		default:
			return i + 1, nil
		}
	}
	return 0, fmt.Errorf("Unterminated quote")
}

// format formats a time, in its zone.
func (f dateFormat) format(t time.Time) string {
	var b strings.Builder
	for _, p := range f {
		if p.letter == 0 {
			b.WriteString(p.text)
			continue
		}
		b.WriteString(p.of(t))
	}
	return b.String()
}

func (p *datePart) of(t time.Time) string {
	number := func(n int) string { return fmt.Sprintf("%0*d", p.width, n) }
	long := func(s string) string {
		if p.width < 4 {
			return s[:3]
		}
		return s
	}
	switch p.letter {
	case 'y':
		if p.width == 2 {
			return fmt.Sprintf("%02d", t.Year()%100)
		}
		return number(t.Year())
	case 'M':
		if p.width > 2 {
			return long(t.Month().String())
		}
		return number(int(t.Month()))
	case 'd':
		return number(t.Day())
	case 'D':
		return number(t.YearDay())
	case 'E':
		return long(t.Weekday().String())
	case 'u':
		return number((int(t.Weekday())+6)%7 + 1)
	case 'a':
		return t.Format("PM")
	case 'H':
		return number(t.Hour())
	case 'k':
		return number((t.Hour()+23)%24 + 1)
	case 'K':
		return number(t.Hour() % 12)
	case 'h':
		return number((t.Hour()+11)%12 + 1)
	case 'm':
		return number(t.Minute())
	case 's':
		return number(t.Second())
	case 'S':
		return number(t.Nanosecond() / 1e6)
	}
	return p.zone(t)
}

// zone formats the time's zone.
func (p *datePart) zone(t time.Time) string {
	switch p.letter {
	case 'z':
		name, offset := t.Zone()
		if _, err := strconv.Atoi(name); err == nil { // the zone has only an offset
			return fmt.Sprintf("GMT%+03d:%02d", offset/3600, abs(offset)/60%60)
		}
		return name
	case 'Z':
		return t.Format("-0700")
	}
	return t.Format([...]string{"Z07", "Z0700", "Z07:00"}[p.width-1])
}

func abs(n int) int { return max(n, -n) }
