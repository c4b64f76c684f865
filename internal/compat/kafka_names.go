package compat

import (
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
)

// KafkaGeneration returns carronade's name for a generation of a tool: 4.3 stands for
// the generation since 4.2.
func KafkaGeneration(asked string) string {
	if asked == "4.2" {
		return "4.3"
	}
	return asked
}

var topicName = regexp.MustCompile(`\A[a-zA-Z0-9._-]*\z`)

// CheckKafkaTopic is Kafka's own check of a topic's name. Kafka's tools leave it to the
// broker. Here an invalid name could be read as another part of an address, and an
// empty name could select another topic.
func CheckKafkaTopic(name string) error {
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

// CheckExpression is the error about a flag's regular expression. Kafka's tools
// take Java's syntax. What Go's syntax lacks of it can take a time that grows with
// each byte.
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
