package omb

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"carronade/internal/advice"
	"carronade/internal/dropin/kafkatools"
	"carronade/internal/kafka/cluster"
)

// A driver is a driver file for Kafka.
type driver struct {
	file, name, class string
	servers           string // HOST:PORT,HOST:PORT
	replicas          int
	reset             bool
	topic             map[string]string // settings of the topics

	properties []property // of both clients, sorted by name
}

// A property is one of the clients' properties.
type property struct{ field, name, value string }

// systems are the systems of the tool's other drivers, by the package of their class.
var systems = map[string]string{
	"artemis": "ActiveMQ Artemis", "bookkeeper": "BookKeeper", "jms": "JMS", "kop": "Kafka on Pulsar", "mqtt5": "MQTT", "nats": "NATS",
	"natsStreaming": "NATS Streaming", "nsq": "NSQ", "pravega": "Pravega", "pulsar": "Pulsar", "rabbitmq": "RabbitMQ", "redis": "Redis", "rocketmq": "RocketMQ",
}

// readDriver reads a driver file. Warnings go to warn.
func readDriver(file string, warn func(string)) (*driver, error) {
	var (
		d        = &driver{file: file, topic: map[string]string{}}
		later    []string // warnings, of no use for another system's driver
		common   map[string]string
		producer map[string]string
		consumer map[string]string
	)
	err := readFile(file, []field{
		text("name", &d.name),
		text("driverClass", &d.class),
		whole("replicationFactor", &d.replicas, 1<<15-1),
		yesOrNo("reset", &d.reset),
		properties("topicConfig", &d.topic),
		properties("commonConfig", &common),
		properties("producerConfig", &producer),
		properties("consumerConfig", &consumer),
	}, func(text string) { later = append(later, text) })
	if err == nil {
		err = d.checkClass()
	}
	if err != nil {
		return nil, err
	}
	for _, text := range later {
		warn(text)
	}
	if d.name == "" {
		d.name = stem(file)
	}
	d.merge(warn, common, producer, consumer)
	if d.servers == "" {
		return nil, &advice.Error{
			Err: fmt.Errorf("%s: bootstrap.servers is missing", file), Hint: "add a line to commonConfig, such as bootstrap.servers=localhost:9092",
		}
	}
	if strings.Contains(d.servers, "/") {
		return nil, fmt.Errorf("%s: bootstrap.servers=%s: brokers are HOST:PORT, with commas between them", file, d.servers)
	}
	if d.replicas == 0 {
		return nil, &advice.Error{Err: fmt.Errorf("%s: replicationFactor is missing", file), Hint: "add replicationFactor: 3, at most the number of brokers"}
	}
	return d, nil
}

// stem is a file's name without its folder and its extension.
func stem(file string) string {
	name := filepath.Base(file)
	if ext := filepath.Ext(name); ext != name {
		name = strings.TrimSuffix(name, ext)
	}
	return name
}

// checkClass refuses the drivers of other systems.
func (d *driver) checkClass() error {
	if d.class == "" {
		return &advice.Error{Err: fmt.Errorf("%s: driverClass is missing: this is not a driver file", d.file), Hint: "name workload files after the flags, and driver files with --drivers"}
	}
	if strings.HasSuffix(d.class, ".KafkaBenchmarkDriver") {
		return nil
	}
	parts := strings.Split(d.class, ".")
	system := parts[len(parts)-1]
	if len(parts) > 1 && systems[parts[len(parts)-2]] != "" {
		system = systems[parts[len(parts)-2]]
	}
	return &advice.Error{
		Err:  fmt.Errorf("%s: a driver of %s: only that of Kafka has a counterpart here", d.file, system),
		Hint: "give a file with driverClass: io.openmessaging.benchmark.driver.kafka.KafkaBenchmarkDriver; where " + system + " speaks Kafka's protocol, its address is bootstrap.servers in commonConfig",
	}
}

// properties reads a text of properties. An error quotes none of it: it may be a password.
func properties(name string, to *map[string]string) field {
	return field{name, func(n *yaml.Node) error {
		value, err := scalar(n)
		if err != nil {
			return fmt.Errorf("%w: properties are lines of one text, after %s: |", err, name)
		}
		*to, err = cluster.ParseProperties([]byte(value))
		return err
	}}
}

// without are properties that have no counterpart and need none: the topics are new, and a group
// commits what it has read.
var without = []string{
	"auto.offset.reset", "enable.auto.commit", "default.api.timeout.ms", "retries",
	"key.serializer", "value.serializer", "key.deserializer", "value.deserializer", "group.id",
}

// merge makes one list of the properties of both clients. What both have in common is in commonConfig; a
// client's own property takes precedence.
func (d *driver) merge(warn func(string), common, producer, consumer map[string]string) {
	all := map[string]property{}
	for _, from := range []struct {
		field string
		props map[string]string
	}{{"commonConfig", common}, {"consumerConfig", consumer}, {"producerConfig", producer}} {
		for name, value := range from.props {
			old, both := all[name]
			if both && from.field == "producerConfig" && old.field == "consumerConfig" && old.value != value {
				warn(fmt.Sprintf("%s: %s differs between consumerConfig and producerConfig: one client does both here, with that of the producer", d.file, name))
			}
			all[name] = property{from.field, name, value}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		switch p := all[name]; {
		case name == "bootstrap.servers":
			d.servers = hostList(p.value)
		case slices.Contains(without, name):
		default:
			d.properties = append(d.properties, p)
		}
	}
}

// hostList is a list of brokers as in a target, without empty ones.
func hostList(list string) string {
	hosts := strings.Split(kafkatools.HostList(list), ",")
	return strings.Join(slices.DeleteFunc(hosts, func(h string) bool { return h == "" }), ",")
}

// property is one of the clients' properties.
func (d *driver) property(name string) (value string, ok bool) {
	i := slices.IndexFunc(d.properties, func(p property) bool { return p.name == name })
	if i < 0 {
		return "", false
	}
	return d.properties[i].value, true
}
