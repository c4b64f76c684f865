package kafkaprops

import (
	"errors"
	"fmt"
	"strings"
)

// Servers is Hosts for brokers that must be there, and the error of Java's
// clients where one is none.
func Servers(list string) (string, error) {
	hosts := Hosts(list)
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

// Stray says that an argument is no option. What is behind its first = may be a
// secret, and is left out.
func Stray(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return fmt.Sprintf("warning: unknown option %s is ignored\n", name)
}
