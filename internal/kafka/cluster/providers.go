package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"carronade/internal/place"
	"carronade/protocol"
)

// providerClasses are Kafka's own providers of configuration (KIP-297, KIP-421), by their classes without a
// package. Each returns the value of a key at a path.
var providerClasses = map[string]func(path, key string) (string, error){
	"FileConfigProvider": func(path, key string) (string, error) {
		data, err := place.ReadFile(path)
		if err != nil {
			return "", err
		}
		props, err := parseProperties(data)
		if err != nil {
			return "", err
		}
		value, ok := props[key]
		if !ok {
			return "", fmt.Errorf("%s has no %s", path, key)
		}
		return value, nil
	},
	"DirectoryConfigProvider": func(path, key string) (string, error) {
		if key != filepath.Base(key) {
			return "", errors.New("the name of the file is a path")
		}
		data, err := place.ReadFile(filepath.Join(path, key))
		return string(data), err
	},
	"EnvVarConfigProvider": func(path, key string) (string, error) {
		if path != "" {
			return "", errors.New("a variable has no path: ${env:NAME}")
		}
		return protocol.ReadSecret("client-config", "env:"+key)
	},
}

// provided is a reference in a property's value: ${PROVIDER:KEY} or ${PROVIDER:PATH:KEY}.
var provided = regexp.MustCompile(`\$\{([^}:]+):(?:([^}]*):)?([^}:]*)\}`)

// resolveProviders replaces the references to providers that config.providers declares, as Java's clients do.
// A text that is like a reference to another provider stays as it is.
func resolveProviders(props map[string]string) error {
	names := strings.Split(props["config.providers"], ",")
	for name, value := range props {
		var failed error
		props[name] = provided.ReplaceAllStringFunc(value, func(whole string) string {
			m := provided.FindStringSubmatch(whole)
			if !slices.ContainsFunc(names, func(n string) bool { return strings.TrimSpace(n) == m[1] }) {
				return whole
			}
			class := props["config.providers."+m[1]+".class"]
			get, ok := providerClasses[baseClass(class)]
			if !ok {
				failed = fmt.Errorf("the provider %s has the class %q, which is not known here", m[1], baseClass(class))
				return ""
			}
			text, err := get(m[2], m[3])
			if err != nil && failed == nil {
				failed = fmt.Errorf("the provider %s: %w", m[1], err)
			}
			return text
		})
		if failed != nil {
			return &protocol.Error{
				Doing: "read the client property " + name, Err: failed,
				Hint: "FileConfigProvider, DirectoryConfigProvider and EnvVarConfigProvider are known; or put the value itself into the file",
			}
		}
	}
	for name := range props {
		if name == "config.providers" || strings.HasPrefix(name, "config.providers.") {
			delete(props, name)
		}
	}
	return nil
}

// librdkafka are the names that librdkafka has for properties of Java's clients, with Java's.
var librdkafka = map[string]string{
	"metadata.broker.list": "bootstrap.servers", "sasl.mechanisms": "sasl.mechanism", "compression.codec": "compression.type",
	"request.required.acks": "acks", "queue.buffering.max.ms": "linger.ms",
	"ssl.ca.location": "ssl.truststore.location", "ssl.ca.pem": "ssl.truststore.certificates",
	"ssl.certificate.location": "ssl.keystore.location", "ssl.certificate.pem": "ssl.keystore.certificate.chain", "ssl.key.pem": "ssl.keystore.key",
}

// renameProperties gives properties of librdkafka the names of Java's clients, unless those are set, too.
func renameProperties(props map[string]string) {
	for theirs, java := range librdkafka {
		value, set := props[theirs]
		if _, both := props[java]; set && !both {
			props[java] = value
			delete(props, theirs)
		}
	}
}
