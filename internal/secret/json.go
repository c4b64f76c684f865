package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
)

// mostNested is how many values of JSON, or elements of XML, may be within one another: each
// of them takes room on the stack.
const mostNested = 1000

var errGrammar = errors.New("the text has another grammar")

// readJSON reads a text that is one or more JSON values, such as a file of lines of JSON.
func readJSON(text string) ([]node, error) {
	if body := strings.TrimLeft(text, " \t\r\n"); body == "" || body[0] != '{' && body[0] != '[' {
		return nil, errGrammar
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var out []node
	for strings.TrimLeft(text[d.InputOffset():], " \t\r\n") != "" {
		n, err := readJSONValue(d, text, 0)
		if err != nil {
			return nil, err
		}
		out = append(out, n)
	}
	return out, nil
}

// readJSONValue reads a value that is within depth others.
func readJSONValue(d *json.Decoder, text string, depth int) (n node, err error) {
	if depth > mostNested {
		return n, errGrammar
	}
	before := int(d.InputOffset())
	token, err := d.Token()
	if err != nil {
		return n, err
	}
	n.to = int(d.InputOffset())
	n.from = before + len(text[before:n.to]) - len(strings.TrimLeft(text[before:n.to], " \t\r\n,:"))
	n.start = n.from
	switch v := token.(type) {
	case json.Delim:
		n.kind = list
		if v == '{' {
			n.kind = table
		}
		for d.More() {
			var key node
			if n.kind == table {
				if key, err = readJSONValue(d, text, depth+1); err != nil {
					return n, err
				}
			}
			one, err := readJSONValue(d, text, depth+1)
			if err != nil {
				return n, err
			}
			if n.kind == table {
				one.name, one.start, key.isName = key.text, key.from, true
				n.below = append(n.below, key)
			}
			n.below = append(n.below, one)
		}
		if _, err := d.Token(); err != nil {
			return n, err
		}
		n.to = int(d.InputOffset())
	case string:
		n.text, n.write = v, writeJSON
	default:
		n.text = text[n.from:n.to]
	}
	return n, nil
}

func writeJSON(s string) string {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(out.String(), "\n")
}
