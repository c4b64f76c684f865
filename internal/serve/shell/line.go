package shell

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxLine is the longest line that a session reads, in bytes.
const MaxLine = 8 << 10

var (
	errLong = fmt.Errorf("the line is longer than %d bytes", MaxLine)
	// errHTTP ends a session: a web page may make a browser send a request to any
	// port of this machine, and the lines of its body must not become commands.
	errHTTP = errors.New("the line is an HTTP request")
)

// A noiseError is a line with characters that cannot be typed.
type noiseError struct{ line string }

func (e *noiseError) Error() string {
	return fmt.Sprintf("the line has characters that are not text: %s", Printable(cut(e.line, 200)))
}

// Bytes of the telnet protocol (RFC 854).
const (
	telnetSE   = 240
	telnetSB   = 250
	telnetWill = 251
	telnetDont = 254
	telnetIAC  = 255
)

// A lineReader reads lines that end with LF, CR LF, CR NUL or CR, and leaves out the
// commands of the telnet protocol. It keeps at most MaxLine bytes of a line.
type lineReader struct {
	r       *bufio.Reader
	afterCR bool // the byte that follows may belong to the end of the line before
}

func newLineReader(r io.Reader) *lineReader { return &lineReader{r: bufio.NewReaderSize(r, 4<<10)} }

// next returns a line without its end. errLong and a *noiseError are about one line,
// and the next call reads the line after it; other errors are final.
func (l *lineReader) next() (string, error) {
	var line []byte
	long := false
	for {
		b, data, err := l.data()
		if err != nil {
			if len(line) > 0 && errors.Is(err, io.EOF) {
				break // the last line may have no end
			}
			return "", err
		}
		if !data {
			continue
		}
		after := l.afterCR
		l.afterCR = false
		if after && (b == '\n' || b == 0) {
			continue
		}
		if b == '\r' || b == '\n' {
			l.afterCR = b == '\r'
			break
		}
		if len(line) == MaxLine {
			long = true
			continue
		}
		line = append(line, b)
	}
	text := string(line)
	switch {
	case isHTTP(text, long):
		return "", errHTTP
	case long:
		return "", errLong
	case !isText(text):
		return "", &noiseError{text}
	}
	return text, nil
}

// endLine reads the rest of the end of the last line, if it came with it.
func (l *lineReader) endLine() {
	if l.afterCR && l.r.Buffered() > 0 {
		if b, err := l.r.ReadByte(); err == nil && b != '\n' && b != 0 {
			l.r.UnreadByte() //nolint:errcheck // a byte was read
		}
	}
	l.afterCR = false
}

// data returns the next byte; false if it read a command of telnet instead.
func (l *lineReader) data() (b byte, data bool, err error) {
	if b, err = l.r.ReadByte(); err != nil || b != telnetIAC {
		return b, true, err
	}
	command, err := l.r.ReadByte()
	switch {
	case err != nil:
		return 0, false, err
	case command == telnetIAC:
		return telnetIAC, true, nil // this byte as data
	case command == telnetSB:
		return 0, false, l.skipOption()
	case command >= telnetWill && command <= telnetDont:
		_, err = l.r.ReadByte() // the option
	}
	return 0, false, err
}

// skipOption skips the parameters of a telnet option.
func (l *lineReader) skipOption() error {
	for {
		b, err := l.r.ReadByte()
		if err == nil && b == telnetIAC {
			b, err = l.r.ReadByte()
			if err == nil && b == telnetSE {
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
}

var httpMethods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "PRI"}

// isHTTP reports whether a line, or the beginning of a long one, is the first line of
// an HTTP request.
func isHTTP(line string, long bool) bool {
	for _, m := range httpMethods {
		rest, ok := strings.CutPrefix(line, m+" ")
		if !ok {
			continue
		}
		_, version, _ := strings.Cut(rest, " ")
		if strings.HasPrefix(version, "HTTP/") || long && strings.HasPrefix(rest, "/") || long && strings.Contains(rest, "://") {
			return true
		}
	}
	return false
}

func isText(s string) bool {
	if !utf8.ValidString(s) {
		return false
	}
	for _, r := range s {
		if r != '\t' && !unicode.IsPrint(r) && !unicode.IsSpace(r) || unicode.IsControl(r) && r != '\t' {
			return false
		}
	}
	return true
}

// Printable returns a text for a terminal: all characters that cannot be printed are
// escaped as in Go, such as \x1b, also those that change the direction of the text.
func Printable(s string) string {
	if isText(s) && !strings.Contains(s, "\t") {
		return s
	}
	var b strings.Builder
	for len(s) > 0 {
		r, n := utf8.DecodeRuneInString(s)
		switch {
		case r == utf8.RuneError && n <= 1:
			fmt.Fprintf(&b, `\x%02x`, s[0])
		case unicode.IsPrint(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		s = s[n:]
	}
	return b.String()
}

// cut returns at most n bytes of a text.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return s[:n] + "..."
}
