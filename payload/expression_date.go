package payload

import (
	"fmt"
	"strings"
)

// A datePattern formats dates in UTC as java.text.SimpleDateFormat does, with English
// names. Years are those of the Gregorian calendar also before its introduction.
type datePattern struct {
	fields []dateField
	most   int // bytes
	days   bool
}

// A dateField is a letter of the pattern, repeated n times; a letter of 0 is a literal.
type dateField struct {
	letter  byte
	n       int
	literal string
}

// Patterns of the functions that take none.
var (
	iso8601Date = mustDate("yyyy-MM-dd'T'HH:mm:ss,SSS")
	rfc1123Date = mustDate("EEE, dd MMM yyyy HH:mm:ss 'GMT'")
	amazonDate  = mustDate("yyyyMMdd'T'HHmmss'Z'")
	javaDate    = mustDate("EEE MMM dd HH:mm:ss z yyyy") // java.util.Date's toString
)

func mustDate(pattern string) *datePattern {
	p, err := parseDate(pattern)
	if err != nil {
		panic(err)
	}
	return p
}

var (
	months   = [...]string{"January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	weekdays = [...]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
)

// dateLetters are the letters of patterns, with the bytes of their longest value if it
// is not a number of n digits.
var dateLetters = map[byte]int{
	'G': 2, 'y': 10, 'M': 9, 'L': 9, 'd': 2, 'D': 3, 'F': 1, 'E': 9, 'u': 1, 'a': 2,
	'H': 2, 'k': 2, 'K': 2, 'h': 2, 'm': 2, 's': 2, 'S': 3, 'z': len(longUTC), 'Z': 5, 'X': 1,
}

const longUTC = "Coordinated Universal Time"

// parseDate reads a pattern.
func parseDate(pattern string) (*datePattern, error) {
	p := &datePattern{}
	literal := func(s string) {
		p.most += len(s)
		if n := len(p.fields); n > 0 && p.fields[n-1].letter == 0 {
			p.fields[n-1].literal += s
			return
		}
		p.fields = append(p.fields, dateField{literal: s})
	}
	for i := 0; i < len(pattern); {
		c := pattern[i]
		switch {
		case c == '\'':
			text, n := unquoted(pattern[i:])
			if n == 0 {
				return nil, fmt.Errorf("the quote at byte %d of the pattern has no end", i+1)
			}
			literal(text)
			i += n
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for i+n < len(pattern) && pattern[i+n] == c {
				n++
			}
			most, ok := dateLetters[c]
			switch {
			case c == 'w' || c == 'W' || c == 'Y':
				return nil, fmt.Errorf("the pattern has %q: the weeks of a year depend on the country", c)
			case !ok, c == 'X' && n > 3:
				return nil, fmt.Errorf("the pattern has %q, which has no meaning; write it in quotes: '%s'", pattern[i:i+n], pattern[i:i+n])
			}
			p.days = p.days || strings.IndexByte("GyMLdDFEu", c) >= 0
			p.most += max(most, n)
			p.fields = append(p.fields, dateField{letter: c, n: n})
			i += n
		default:
			literal(pattern[i : i+1])
			i++
		}
	}
	return p, nil
}

// unquoted reads a text in quotes and returns its length with them. Two quotes are one
// quote, also within quotes. The length is 0 without an end.
func unquoted(s string) (text string, n int) {
	if strings.HasPrefix(s, "''") {
		return "'", 2
	}
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] != '\'':
			b.WriteByte(s[i])
		case i+1 < len(s) && s[i+1] == '\'':
			b.WriteByte('\'')
			i++
		default:
			return b.String(), i + 1
		}
	}
	return "", 0
}

const dayMillis = 24 * 60 * 60 * 1000

// append appends a date, in milliseconds since 1970.
func (p *datePattern) append(dst []byte, millis int64) []byte {
	day, within := millis/dayMillis, millis%dayMillis
	if within < 0 {
		day, within = day-1, within+dayMillis
	}
	var d civil
	if p.days {
		d = civilOf(day)
	}
	for i := range p.fields {
		f := &p.fields[i]
		switch f.letter {
		case 0:
			dst = append(dst, f.literal...)
		case 'y':
			year := d.year
			if year <= 0 {
				year = 1 - year
			}
			if f.n == 2 {
				year %= 100
			}
			dst = appendPadded(dst, year, f.n)
		case 'M', 'L':
			if f.n < 3 {
				dst = appendPadded(dst, d.month, f.n)
			} else {
				dst = appendDayName(dst, months[d.month-1], f.n)
			}
		case 'd':
			dst = appendPadded(dst, d.day, f.n)
		case 'H':
			dst = appendPadded(dst, within/3600000, f.n)
		case 'm':
			dst = appendPadded(dst, within/60000%60, f.n)
		case 's':
			dst = appendPadded(dst, within/1000%60, f.n)
		case 'S':
			dst = appendPadded(dst, within%1000, f.n)
		default:
			dst = f.rare(dst, d, day, within/3600000)
		}
	}
	return dst
}

// rare appends the fields that few patterns have.
func (f *dateField) rare(dst []byte, d civil, day, hour int64) []byte {
	switch f.letter {
	case 'G':
		if d.year <= 0 {
			return append(dst, "BC"...)
		}
		return append(dst, "AD"...)
	case 'D':
		return appendPadded(dst, day-daysBefore(d.year)+1, f.n)
	case 'F':
		return appendPadded(dst, (d.day-1)/7+1, f.n)
	case 'E':
		return appendDayName(dst, weekdays[weekday(day)], f.n)
	case 'u':
		return appendPadded(dst, (weekday(day)+6)%7+1, f.n)
	case 'a':
		if hour < 12 {
			return append(dst, "AM"...)
		}
		return append(dst, "PM"...)
	case 'k':
		return appendPadded(dst, (hour+23)%24+1, f.n)
	case 'K':
		return appendPadded(dst, hour%12, f.n)
	case 'h':
		return appendPadded(dst, (hour+11)%12+1, f.n)
	case 'z':
		if f.n >= 4 {
			return append(dst, longUTC...)
		}
		return append(dst, "UTC"...)
	case 'Z':
		return append(dst, "+0000"...)
	default: // X
		return append(dst, 'Z')
	}
}

// appendDayName appends a name, of which fewer than four letters ask for the first three.
func appendDayName(dst []byte, name string, letters int) []byte {
	if letters < 4 {
		name = name[:3]
	}
	return append(dst, name...)
}

// appendPadded appends v, at least 0, with leading zeros to a width.
func appendPadded(dst []byte, v int64, width int) []byte {
	if width == 2 && v < 100 {
		return append(dst, byte('0'+v/10), byte('0'+v%10))
	}
	var b [20]byte
	i := len(b)
	for v >= 10 {
		i--
		b[i] = byte('0' + v%10)
		v /= 10
	}
	i--
	b[i] = byte('0' + v)
	for n := len(b) - i; n < width; n++ {
		dst = append(dst, '0')
	}
	return append(dst, b[i:]...)
}

// weekday is the day of the week, 0 for Sunday, of a day since 1970.
func weekday(day int64) int64 { return ((day+4)%7 + 7) % 7 }

// A civil is a day of the Gregorian calendar. The year before 1 is 0.
type civil struct{ year, month, day int64 }

const eraDays = 146097 // in 400 years

// civilOf returns a day since 1970, by eras of 400 years that begin in March (Hinnant:
// chrono-compatible low-level date algorithms).
func civilOf(day int64) civil {
	day += 719468
	era := day / eraDays
	if day < 0 {
		era = (day - eraDays + 1) / eraDays
	}
	in := day - era*eraDays
	year := (in - in/1460 + in/36524 - in/146096) / 365
	of := in - (365*year + year/4 - year/100)
	m := (5*of + 2) / 153
	d := civil{year: year + era*400, month: m + 3, day: of - (153*m+2)/5 + 1}
	if m >= 10 {
		d.month, d.year = m-9, d.year+1
	}
	return d
}

// daysBefore returns the days from 1970 to the beginning of a year.
func daysBefore(year int64) int64 {
	year-- // January belongs to the year that began in March before
	era := year / 400
	if year < 0 {
		era = (year - 399) / 400
	}
	in := year - era*400
	return era*eraDays + 365*in + in/4 - in/100 + 306 - 719468
}
