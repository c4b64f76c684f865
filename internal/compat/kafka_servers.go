package compat

import (
	"errors"
	"fmt"
	"strings"
)

// KafkaServers is KafkaHosts for a required list of brokers, with the errors of Java's
// clients.
func KafkaServers(list string) (string, error) {
	hosts := KafkaHosts(list)
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

// UnknownOption is the warning that an argument is not an option. It leaves out
// everything after the first =, which may be a secret.
func UnknownOption(arg string) string {
	name, _, _ := strings.Cut(arg, "=")
	return fmt.Sprintf("warning: unknown option %s is ignored\n", name)
}
