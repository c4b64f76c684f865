package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/secret"
	"carronade/protocol"
	"carronade/units"
)

// A Setting is one row of the table: a setting of the load, or an option of a
// kind of target.
type Setting struct {
	protocol.Option

	// Short is the one-letter flag; "": none.
	Short string
	// Kind is the name of the kind whose option this is; "" for a setting of
	// the load, which every kind has.
	Kind string
	// NotOps are operations to which the setting does not apply. (Option.Ops are those to
	// which it does.)
	NotOps []string
	// FlagOnly settings say where output goes. They are not allowed in files and not part of
	// the workload.
	FlagOnly bool
	// Aside settings are about the report, not about the load.
	Aside bool
	// Bare is the value of the flag if it is given without one; "": it needs one.
	Bare string

	check func(text string) error
	// showAll is Show for a whole list, where one value may decide how to show the next.
	showAll func(texts []string) []string
}

// Check returns an error for an invalid value. It names neither the setting nor, for a secret,
// the text.
func (s *Setting) Check(text string) error {
	if s.Secret {
		return checkReference(text)
	}
	if text == "" {
		return errors.New("has no value")
	}
	if len(s.Choices) > 0 && !slices.Contains(s.Choices, text) {
		return &protocol.Error{
			Err:  fmt.Errorf("must be one of %s, not %q", strings.Join(s.Choices, ", "), text),
			Hint: advice.DidYouMean(text, s.Choices, "%q", ""),
		}
	}
	if err := checkType(s.Type, text); err != nil {
		if s.Name == "repeat" && text == "auto" {
			return &protocol.Error{Err: errors.New("auto needs two sides"), Hint: "carronade compare --run A.yaml B.yaml --repeat auto runs both until there is a verdict"}
		}
		return err
	}
	if s.Show != nil && strings.Contains(text, secret.Hidden) {
		return &protocol.Error{Err: errors.New("holds " + secret.Hidden + ", the placeholder of a secret in reports"), Hint: "put the secret back, by reference (env:NAME, file:PATH) where that is supported"}
	}
	if s.check != nil {
		return s.check(text)
	}
	return nil
}

// AppliesTo reports whether the setting applies to an operation.
func (s *Setting) AppliesTo(op string) bool {
	return !slices.Contains(s.NotOps, op) && (len(s.Ops) == 0 || slices.Contains(s.Ops, op))
}

// Placeholder is the name of the value in help; "" for a switch.
func (s *Setting) Placeholder() string {
	switch {
	case s.Type == protocol.Bool:
		return ""
	case len(s.Choices) > 0:
		return strings.Join(s.Choices, "|")
	case s.Word != "":
		return s.Word
	}
	switch s.Type {
	case protocol.Int:
		return "N"
	case protocol.Float:
		return "X"
	case protocol.List, protocol.String:
		return "TEXT"
	}
	return strings.ToUpper(s.Type.String())
}

func checkType(t protocol.Type, text string) error {
	switch t {
	case protocol.Bool:
		if text != "true" && text != "false" {
			return fmt.Errorf("must be true or false, not %q", text)
		}
		return nil
	case protocol.Float:
		if f, err := strconv.ParseFloat(text, 64); err != nil || f != f || f-f != 0 {
			return fmt.Errorf("must be a number, not %q", text)
		}
		return nil
	case protocol.Int:
		return second(units.ParseCount(text))
	case protocol.Duration:
		return second(units.ParseDuration(text))
	case protocol.Size:
		return second(units.ParseSize(text))
	case protocol.Rate:
		return second(units.ParseRate(text))
	case protocol.Share:
		return second(units.ParseShare(text))
	}
	return nil
}

func second[T any](_ T, err error) error { return err }

// checkReference accepts env:NAME and file:PATH. Any other text may be the secret itself, so
// the error does not repeat it.
func checkReference(text string) error {
	if secret.IsReference(text) {
		return nil
	}
	return &protocol.Error{
		Err:  errors.New("must be a reference, not the secret itself"),
		Hint: "write env:NAME for an environment variable or file:PATH for a file that holds it",
	}
}

// At adds a place to an error, and keeps its hint.
func At(where string, err error) error {
	if inner, ok := errors.AsType[*protocol.Error](err); ok && inner.Doing == "" {
		return &protocol.Error{Doing: where, Err: inner.Err, Hint: inner.Hint}
	}
	return &protocol.Error{Doing: where, Err: err}
}
