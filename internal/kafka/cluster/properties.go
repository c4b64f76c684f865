package cluster

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"carronade/internal/place"
)

// maxProperties bounds the size of a properties file.
const maxProperties = 1 << 20

// parseProperties reads a Java properties file, in the format that
// java.util.Properties.load documents: "key=value", "key: value" or
// "key value"; lines that begin with # or ! are comments; a backslash at the
// end joins the next line; \t \n \r \f \\ \uXXXX and \ before anything else.
// A key given twice has its last value. Java reads such files as ISO-8859-1, and so does this; a byte order mark
// of UTF-8 is skipped.
//
// An error names the line and never quotes it, since it may contain a password.
func parseProperties(data []byte) (map[string]string, error) {
	if len(data) > maxProperties {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(data), maxProperties)
	}
	return ParseProperties(latin1(place.TextOf(data)))
}

// ParseProperties reads the properties of a Java client in a text of UTF-8: see parseProperties.
func ParseProperties(text []byte) (map[string]string, error) {
	props := map[string]string{}
	sc := bufio.NewScanner(bytes.NewReader(text))
	sc.Buffer(nil, 2*maxProperties+1) // UTF-8 needs two bytes for one of ISO-8859-1
	sc.Split(splitJavaLines)
	var logical []byte
	number, first := 0, 0
	flush := func() error {
		if len(logical) == 0 {
			return nil
		}
		key, value, err := parseProperty(logical)
		if err == nil && !bytes.ContainsAny(logical, "=:") && !PropertyKnown(key) {
			err = errors.New("it has no =") // Java takes its first word for a name; it may be a part of a password
		}
		logical = logical[:0]
		if err != nil {
			return fmt.Errorf("line %d: %w", first, err)
		}
		props[key] = value
		return nil
	}
	continued := false
	for sc.Scan() {
		number++
		line := bytes.TrimLeft(sc.Bytes(), " \t\f")
		if !continued {
			if len(line) == 0 || line[0] == '#' || line[0] == '!' {
				continue
			}
			first = number
		}
		slashes := 0
		for slashes < len(line) && line[len(line)-1-slashes] == '\\' {
			slashes++
		}
		if continued = slashes%2 == 1; continued {
			line = line[:len(line)-1]
		}
		logical = append(logical, line...)
		if continued {
			continue
		}
		if err := flush(); err != nil {
			return nil, err
		}
	}
	if err := sc.Err(); err != nil {
		return nil, err
	}
	return props, flush()
}

// latin1 returns a text of ISO-8859-1 as UTF-8.
func latin1(data []byte) []byte {
	if !bytes.ContainsFunc(data, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return data
	}
	out := make([]byte, 0, len(data)*2)
	for _, b := range data {
		out = utf8.AppendRune(out, rune(b))
	}
	return out
}

// splitJavaLines splits at \n, \r and \r\n.
func splitJavaLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0 && atEOF && len(data) > 0:
		return len(data), data, nil
	case i < 0:
		return 0, nil, nil
	case data[i] == '\r' && i+1 == len(data) && !atEOF:
		return 0, nil, nil // perhaps \r\n
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2, data[:i], nil
	}
	return i + 1, data[:i], nil
}

// parseProperty splits one logical line.
func parseProperty(line []byte) (key, value string, err error) {
	i := 0
	for i < len(line) && !bytes.ContainsRune([]byte("=: \t\f"), rune(line[i])) {
		if line[i] == '\\' {
			i++
		}
		i++
	}
	i = min(i, len(line))
	if key, err = unescapeProperty(line[:i]); err != nil {
		return "", "", err
	}
	rest := bytes.TrimLeft(line[i:], " \t\f")
	if len(rest) > 0 && (rest[0] == '=' || rest[0] == ':') {
		rest = bytes.TrimLeft(rest[1:], " \t\f")
	}
	value, err = unescapeProperty(rest)
	return key, value, err
}

func unescapeProperty(b []byte) (string, error) {
	if !bytes.ContainsRune(b, '\\') {
		return string(b), nil
	}
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			out = append(out, b[i])
			continue
		}
		i++
		if i == len(b) {
			break // a single backslash at the very end is ignored
		}
		switch b[i] {
		case 't':
			out = append(out, '\t')
		case 'n':
			out = append(out, '\n')
		case 'r':
			out = append(out, '\r')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, ok := hexUnit(b[i+1:])
			if !ok {
				return "", errors.New("a \\u needs four hexadecimal digits")
			}
			i += 4
			if bytes.HasPrefix(b[i+1:], []byte(`\u`)) {
				if low, ok := hexUnit(b[i+3:]); ok && utf16.DecodeRune(r, low) != utf8.RuneError {
					r = utf16.DecodeRune(r, low)
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
		default:
			out = append(out, b[i])
		}
	}
	return string(out), nil
}

// hexUnit reads a unit of UTF-16 from four hexadecimal digits.
func hexUnit(b []byte) (rune, bool) {
	if len(b) < 4 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(b[:4]), 16, 16)
	return rune(n), err == nil
}

// ReadProperties reads a client's properties file and adds single properties, each
// k=v, which take precedence. Errors quote no value: it may be a password.
func ReadProperties(file string, single []string) (map[string]string, error) {
	props := map[string]string{}
	if file != "" {
		data, err := place.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read the client's properties: %w", err)
		}
		if props, err = parseProperties(data); err != nil {
			return nil, fmt.Errorf("read the client's properties in %s: %w", file, err)
		}
	}
	for _, s := range single {
		key, value, ok := strings.Cut(s, "=")
		key = strings.TrimSpace(key)
		if !ok || key == "" {
			// The text is not quoted: it may be a password.
			return nil, fmt.Errorf("client-property: want key=value, such as linger.ms=5")
		}
		props[key] = strings.TrimSpace(value)
	}
	if err := resolveProviders(props); err != nil {
		return nil, err
	}
	for key, value := range props {
		props[key] = strings.TrimSpace(value) // as Java's clients do with each value, passwords too
	}
	renameProperties(props)
	return props, nil
}
