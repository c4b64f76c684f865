package omb

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"carronade/internal/advice"
	"carronade/internal/place"
	"carronade/internal/workload"
)

// A field is one field of a file. take reads its value; without one, the default stays.
type field struct {
	name string
	take func(n *yaml.Node) error
}

// readFile reads a file of fields, YAML or JSON. An error has the file, the line and the column. Of a field
// that is unknown, warn receives a warning.
func readFile(file string, fields []field, warn func(string)) error {
	data, err := place.ReadFile(file)
	if err != nil {
		return &advice.Error{Err: fmt.Errorf("read %s: %w", file, err), Hint: "check the path: it begins in the folder in which carronade runs"}
	}
	return readFields(file, data, fields, warn)
}

func readFields(file string, data []byte, fields []field, warn func(string)) error {
	doc, err := workload.ParseYAML(file, data)
	if err != nil {
		return fmt.Errorf("%w", err)
	}
	if doc == nil {
		return &advice.Error{Err: fmt.Errorf("%s: the file is empty", file), Hint: fieldsHint}
	}
	if doc.Kind != yaml.MappingNode {
		return &advice.Error{Err: fmt.Errorf("%s: not fields and values", at(file, doc)), Hint: fieldsHint}
	}
	for pair := range slices.Chunk(doc.Content, 2) {
		key, value := pair[0], pair[1]
		i := slices.IndexFunc(fields, func(f field) bool { return f.name == key.Value })
		if i < 0 {
			var names []string
			for _, f := range fields {
				names = append(names, f.name)
			}
			text := fmt.Sprintf("%s: the field %s is unknown and ignored", at(file, key), key.Value)
			if hint := advice.DidYouMean(key.Value, names, "%s", ""); hint != "" {
				text += ": " + hint
			}
			warn(text)
			continue
		}
		if value.Kind == yaml.ScalarNode && value.Tag == "!!null" {
			continue
		}
		if err := fields[i].take(value); err != nil {
			return fmt.Errorf("%s: %s: %w", at(file, value), key.Value, err)
		}
	}
	return nil
}

const fieldsHint = "a file has lines such as \"topics: 1\""

// at names a place in a file.
func at(file string, n *yaml.Node) string { return fmt.Sprintf("%s:%d:%d", file, n.Line, n.Column) }

// scalar is the text of a value that is one.
func scalar(n *yaml.Node) (string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return n.Value, nil
	case yaml.SequenceNode:
		return "", errors.New("must be one value, not a list")
	}
	return "", errors.New("must be one value, not several fields")
}

// text reads a text.
func text(name string, to *string) field {
	return field{name, func(n *yaml.Node) (err error) {
		*to, err = scalar(n)
		return err
	}}
}

// whole reads a number from 0 to most. A fraction is cut off, as the tool does.
func whole(name string, to *int, most int) field {
	return field{name, func(n *yaml.Node) error {
		f, err := number(n, "a whole number")
		switch {
		case err != nil:
			return err
		case f < 0:
			return fmt.Errorf("must not be below 0, as %s is", n.Value)
		case f > float64(most):
			return fmt.Errorf("must be at most %d, not %s", most, n.Value)
		}
		*to = int(f)
		return nil
	}}
}

// amount reads a number that is not below 0 and at most most.
func amount(name string, to *float64, most float64) field {
	return field{name, func(n *yaml.Node) error {
		f, err := number(n, "a number")
		switch {
		case err != nil:
			return err
		case f < 0:
			return fmt.Errorf("must not be below 0, as %s is", n.Value)
		case f > most:
			return fmt.Errorf("must be at most %s, not %s", shortNumber(most), n.Value)
		}
		*to = f
		return nil
	}}
}

// number is a value as a number; quotes and underscores in it are fine, as for the tool.
func number(n *yaml.Node, kind string) (float64, error) {
	value, err := scalar(n)
	if err != nil {
		return 0, err
	}
	digits := strings.TrimSpace(value)
	if n.Tag == "!!int" {
		digits = strings.ReplaceAll(digits, "_", "")
	}
	f, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(f) || math.IsInf(f, 0) || strings.ContainsAny(digits, "xXpP_") {
		return 0, fmt.Errorf("%q is not %s", shortened(value), kind)
	}
	return f, nil
}

// yesOrNo reads a truth value.
func yesOrNo(name string, to *bool) field {
	return field{name, func(n *yaml.Node) error {
		value, err := scalar(n)
		if err != nil {
			return err
		}
		switch strings.ToLower(value) {
		case "true":
			*to = true
		case "false":
			*to = false
		default:
			return fmt.Errorf("%q is neither true nor false", shortened(value))
		}
		return nil
	}}
}

// oneOf reads one of several names.
func oneOf(name string, to *string, names ...string) field {
	return field{name, func(n *yaml.Node) error {
		value, err := scalar(n)
		if err != nil {
			return err
		}
		if !slices.Contains(names, value) {
			return fmt.Errorf("%q is none of %s", shortened(value), strings.Join(names, ", "))
		}
		*to = value
		return nil
	}}
}

// shortened is a value in a message.
func shortened(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		return string(r[:most]) + "..."
	}
	return s
}
