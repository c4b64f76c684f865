package compat

import "strings"

// KafkaHosts converts a list of brokers for Java's clients to the form of a target:
// without blanks around a broker and without the listener's name before it, as in
// PLAINTEXT://host:9092.
func KafkaHosts(list string) string {
	parts := strings.Split(list, ",")
	for i, p := range parts {
		if _, rest, ok := strings.Cut(p, "://"); ok {
			p = rest
		}
		parts[i] = strings.TrimSpace(p)
	}
	return strings.Join(parts, ",")
}
