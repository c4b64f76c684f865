package kafkatools

import (
	"fmt"
	"regexp"
)

var topicName = regexp.MustCompile(`\A[a-zA-Z0-9._-]*\z`)

// CheckTopic is Kafka's own check of a topic's name. Kafka's tools leave it to the
// broker. Here an invalid name could be read as another part of an address, and an
// empty name could select another topic.
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
