package kafkaprops

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// Generation is a generation of a tool by the name that it goes by here: 4.3 is
// what has been since 4.2.
func Generation(asked string) string {
	if asked == "4.2" {
		return "4.3"
	}
	return asked
}

var topicName = regexp.MustCompile(`\A[a-zA-Z0-9._-]*\z`)

// CheckTopic is Kafka's own check of a topic's name, which its tools leave to the
// broker. Here, what is no topic could be another part of an address, and none at
// all another topic.
func CheckTopic(name string) error {
	var reason string
	switch {
	case name == "":
		reason = "the empty string is not allowed"
	case name == ".", name == "..":
		reason = "'" + name + "' is not allowed"
	case len(name) > 249:
		reason = "the length of '" + name + "' is longer than the max allowed length 249"
	case !topicName.MatchString(name):
		reason = "'" + name + "' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
	default:
		return nil
	}
	return fmt.Errorf("Topic name is invalid: %s", reason)
}

// CheckExpression is the error about a regular expression that a flag was given.
// Kafka's tools take Java's; what those have and ours have not can take a time
// that grows with each byte.
func CheckExpression(flag, text string) error {
	_, err := regexp.Compile(text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		switch wrong.Code {
		case syntax.ErrInvalidPerlOp, syntax.ErrInvalidNamedCapture, syntax.ErrInvalidRepeatOp, syntax.ErrInvalidEscape:
			return fmt.Errorf("%s: %w (expressions are RE2's here: no look-around such as (?<=x), no back references, no possessive x++)", flag, err)
		}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", flag, err)
	}
	return nil
}
