package system

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// maxExpvarDepth is how deep objects may be nested.
const maxExpvarDepth = 32

// expvar reads the format of Go's package expvar: one JSON object. True and false
// are 1 and 0.
func expvar(body []byte, collect func(string, float64, bool)) error {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	first, err := d.Token()
	if err != nil {
		return fmt.Errorf("its answer is not JSON: %w", err)
	}
	if first != json.Delim('{') {
		return errors.New("its answer is not a JSON object, as expvar's is")
	}
	var path []string // names down to the next value
	depth, lists := 1, 0
	name := true // the next token is a name
	for depth > 0 {
		token, err := d.Token()
		if err != nil {
			return fmt.Errorf("its answer is truncated: %w", err)
		}
		if lists > 0 { // lists, and objects beyond maxExpvarDepth, are skipped
			switch token {
			case json.Delim('['), json.Delim('{'):
				lists++
			case json.Delim(']'), json.Delim('}'):
				lists--
			}
			if lists == 0 {
				path, name = path[:len(path)-1], true
			}
			continue
		}
		if name {
			if token == json.Delim('}') {
				depth--
				path = path[:max(0, len(path)-1)]
				continue
			}
			key, _ := token.(string)
			path, name = append(path, key), false
			continue
		}
		switch v := token.(type) {
		case json.Delim:
			if v == '[' || depth >= maxExpvarDepth {
				lists = 1
				continue
			}
			depth++
			name = true
			continue
		case json.Number:
			if f, err := v.Float64(); err == nil {
				collect(strings.Join(path, "."), f, false)
			}
		case bool:
			f := 0.0
			if v {
				f = 1
			}
			collect(strings.Join(path, "."), f, false)
		}
		path, name = path[:len(path)-1], true
	}
	return nil
}
