package kafkatools

import (
	"slices"
	"strings"
)

// A producerReading is the interpretation of a command line.
type producerReading struct {
	lines            kafkaGeneration // of flags, lines and messages
	clientGeneration kafkaGeneration // of the client, payloads and transactions
	note             string          // the note to print if other generations are as likely
}

// Notes about command lines that fit several generations.
const (
	noteAll = "note: these flags fit Kafka 0.10 to 1.1, 2.0 to 4.1, and, deprecated, 4.2 and later: lines have the form of the first, and properties that are not given default to today's Java client (acks=all, linger.ms=5, idempotent); " +
		"--generation 2018, 4.1 or 4.3 selects the lines and the client of one"
	noteTwo = "note: these flags fit Kafka 2.0 to 4.1 and, deprecated, 4.2 and later: lines are those of 4.1; --generation 4.3 has the others"
)

// readProducer chooses the generation of arguments: the requested one, or else one that
// they fit. Servers given by properties, without any flag of 4.2, were the only way
// until 4.2; the newest tool accepts them as deprecated. If such arguments also fit
// 2018, the lines are those of 2018, because the lines printed for such commands
// have only that form. The client and its default acks are those of the current
// tool.
func readProducer(asked string, args []string) (producerReading, error) {
	if asked != "" {
		g, err := askedGeneration(asked, of2018)
		return producerReading{lines: g, clientGeneration: g}, err
	}
	given, ok := fitsGeneration(of41, args)
	if !ok || !hasProducerFlag(given, "--producer-props") && !hasProducerFlag(given, "--producer.config") {
		return producerReading{lines: of43, clientGeneration: of43}, nil
	}
	if _, ok := fitsGeneration(of2018, args); !ok || hasProducerFlag(given, "--transactional-id") && !hasProducerFlag(given, "--transaction-duration-ms") || slices.ContainsFunc(given["--producer-props"], isNewProperty) {
		return producerReading{lines: of41, clientGeneration: of41, note: noteTwo}, nil
	}
	return producerReading{lines: of2018, clientGeneration: of41, note: noteAll}, nil
}

// fitsGeneration reports whether arguments are a complete command line of a generation.
func fitsGeneration(g kafkaGeneration, args []string) (given map[string][]string, ok bool) {
	given, err := parseArgparse(g.flags(), args)
	return given, err == nil && missingProducerFlag(g.flags(), given) == nil
}

// isNewProperty reports whether a property was added after 1.1 (Kafka's documentation of
// producer configurations, by version).
func isNewProperty(pair string) bool {
	name, value, _ := strings.Cut(pair, "=")
	switch name {
	case "delivery.timeout.ms", "client.dns.lookup", "metadata.max.idle.ms", "metadata.recovery.strategy", "enable.metrics.push", "security.providers",
		"socket.connection.setup.timeout.ms", "socket.connection.setup.timeout.max.ms", "partitioner.ignore.keys",
		"sasl.login.callback.handler.class", "sasl.client.callback.handler.class",
		"ssl.keystore.key", "ssl.keystore.certificate.chain", "ssl.truststore.certificates", "ssl.engine.factory.class":
		return true
	case "compression.type":
		return value == "zstd"
	}
	return strings.HasPrefix(name, "sasl.oauthbearer.") || strings.HasPrefix(name, "partitioner.a") || strings.HasPrefix(name, "compression.") && strings.HasSuffix(name, ".level")
}
