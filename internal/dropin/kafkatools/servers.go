package kafkatools

import (
	"errors"
	"fmt"
	"strings"
)

// HostList converts a list of brokers for Java's clients to the form of a target:
// without blanks around a broker and without the listener's name before it, as in
// PLAINTEXT://host:9092.
func HostList(list string) string {
	parts := strings.Split(list, ",")
	for i, p := range parts {
		if _, rest, ok := strings.Cut(p, "://"); ok {
			p = rest
		}
		parts[i] = strings.TrimSpace(p)
	}
	return strings.Join(parts, ",")
}

// readServers is HostList for a required list of brokers, with the errors of Java's
// clients.
func readServers(list string) (string, error) {
	hosts := HostList(list)
	if hosts == "" {
		return "", errors.New("Configuration 'bootstrap.servers' must not be empty. Valid values include: any non-empty value")
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if strings.Contains(host, "/") {
			return "", fmt.Errorf("Invalid url in bootstrap.servers: %s", host)
		}
	}
	return hosts, nil
}

// unknownOption is the warning that an argument is not an option. It leaves out
// everything after the first =, which may be a secret.
func unknownOption(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return fmt.Sprintf("warning: unknown option %s is ignored\n", name)
}
