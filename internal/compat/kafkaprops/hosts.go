package kafkaprops

import "strings"

// Hosts is a list of brokers as Java's clients take it, in the words of a
// target: blanks around a broker, and the name of a listener before it, as in
// PLAINTEXT://host:9092, are left out.
func Hosts(list string) string {
	parts := strings.Split(list, ",")
	for i, p := range parts {
		if _, rest, ok := strings.Cut(p, "://"); ok {
			p = rest
		}
		parts[i] = strings.TrimSpace(p)
	}
	return strings.Join(parts, ",")
}
