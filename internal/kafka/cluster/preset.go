package cluster

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/payload"
	"carronade/protocol"
)

// A property is how one property of a Java client is handled here.
type property struct {
	option  string                             // the option it presets; "" when other code reads it
	convert func(value string) (string, error) // converts its value to the option's syntax; nil: unchanged
	ignored bool                               // known, and correctly without effect here
	secret  bool                               // never shown
}

// properties are the properties of the Java clients (version 4.x,
// https://kafka.apache.org/documentation/#configuration) that have a meaning
// here.
var properties = map[string]property{
	"acks":                                  {option: "acks", convert: instead("-1", "all")},
	"batch.size":                            {option: "batch-size", convert: instead("0", "1")}, // 0 is one record per batch, and a record is larger than 1
	"linger.ms":                             {option: "linger", convert: millis},
	"compression.type":                      {option: "compression"},
	"enable.idempotence":                    {option: "idempotent", convert: lower},
	"max.in.flight.requests.per.connection": {option: "max-in-flight"},
	"request.timeout.ms":                    {option: "request-timeout", convert: millis},
	"delivery.timeout.ms":                   {option: "delivery-timeout", convert: millis},
	"buffer.memory":                         {option: "buffer-memory"},
	"max.request.size":                      {option: "max-request"},
	"send.buffer.bytes":                     {option: "send-buffer", convert: instead("-1", "")}, // -1 is the operating system's default, as our empty one
	"receive.buffer.bytes":                  {option: "recv-buffer", convert: instead("-1", "")},
	"client.id":                             {option: "client-id"},
	"client.rack":                           {option: "rack"},
	"transactional.id":                      {option: "transactional-id"},
	"partitioner.class":                     {option: "partitioner", convert: partitionerText},

	"group.id":                  {option: "group"},
	"group.protocol":            {option: "group-protocol", convert: lower},
	"auto.offset.reset":         {option: "from", convert: lower},
	"fetch.min.bytes":           {option: "fetch-min"},
	"fetch.max.bytes":           {option: "fetch-max"},
	"max.partition.fetch.bytes": {option: "fetch-partition-max"},
	"fetch.max.wait.ms":         {option: "fetch-wait", convert: millis},
	"isolation.level":           {option: "isolation", convert: isolationText},

	// Read by parseTarget and parseSecurity.
	"bootstrap.servers": {}, "security.protocol": {}, "sasl.mechanism": {}, "sasl.jaas.config": {secret: true},
	"sasl.oauthbearer.token.endpoint.url": {secret: true}, "sasl.oauthbearer.scope": {}, "sasl.oauthbearer.header.urlencode": {}, // a URL may contain a password
	"sasl.oauthbearer.client.credentials.client.id": {}, "sasl.oauthbearer.client.credentials.client.secret": {secret: true},
	"ssl.truststore.type": {}, "ssl.truststore.location": {}, "ssl.truststore.certificates": {}, "ssl.truststore.password": {secret: true},
	"ssl.keystore.type": {}, "ssl.keystore.location": {}, "ssl.keystore.key": {secret: true}, "ssl.keystore.certificate.chain": {},
	"ssl.keystore.password": {secret: true}, "ssl.key.password": {secret: true}, "ssl.endpoint.identification.algorithm": {},

	// librdkafka's, as far as renameProperties has no other name for them.
	"sasl.username": {}, "sasl.password": {secret: true}, "ssl.key.location": {}, "enable.ssl.certificate.verification": {},

	// Keys and values are raw bytes, only a group's offsets are committed, and
	// the delivery timeout ends retries, as by Java's default.
	"key.serializer": {ignored: true}, "value.serializer": {ignored: true},
	"key.deserializer": {ignored: true}, "value.deserializer": {ignored: true},
	"sasl.client.callback.handler.class": {ignored: true}, "sasl.login.callback.handler.class": {ignored: true},
}

func lower(s string) (string, error) { return strings.ToLower(s), nil }

func millis(s string) (string, error) {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < 0 || n > int64(time.Duration(1<<63-1)/time.Millisecond) {
		return "", fmt.Errorf("want a number of milliseconds")
	}
	return strconv.FormatInt(n, 10) + "ms", nil
}

// instead returns a conversion that replaces one value of Java's with one of ours.
func instead(java, ours string) func(string) (string, error) {
	return func(s string) (string, error) {
		if s == java {
			return ours, nil
		}
		return s, nil
	}
}

func partitionerText(class string) (string, error) {
	switch class[strings.LastIndexByte(class, '.')+1:] {
	case "RoundRobinPartitioner":
		return "roundrobin", nil
	case "UniformStickyPartitioner":
		return "sticky", nil
	case "DefaultPartitioner":
		return "murmur2", nil
	}
	return "", fmt.Errorf("only RoundRobinPartitioner, UniformStickyPartitioner and DefaultPartitioner have a counterpart: use --partitioner")
}

func isolationText(s string) (string, error) { return strings.TrimPrefix(s, "read_"), nil }

// PropertyKnown reports whether a client's property is known. Presets warns of
// those that are not.
func PropertyKnown(name string) bool {
	_, known := properties[name]
	return known
}

// PropertySetting returns the option, or the setting of any workload, that a client's property stands for, and its
// text there; "" for a property that other code reads, or that is unknown.
func PropertySetting(name, value string) (option, text string, err error) {
	p := properties[name]
	if text = strings.TrimSpace(value); p.convert != nil {
		if text, err = p.convert(text); err != nil {
			return "", "", fmt.Errorf("client property %s: %w", name, err)
		}
	}
	return p.option, text, nil
}

// PropertySecret reports whether a client's property is known to contain a
// secret.
func PropertySecret(name string) bool { return properties[name].secret }

// PropertyApplies reports whether a client's property has a meaning for an
// operation. A known property that presets no option has one for all operations.
func PropertyApplies(name, op string) bool {
	p, known := properties[name]
	if !known || p.option == "" {
		return known
	}
	for _, o := range Options() {
		if o.Name == p.option {
			return len(o.Ops) == 0 || slices.Contains(o.Ops, op)
		}
	}
	// linger and max-in-flight are settings of every workload: they apply where
	// it produces.
	return op != OpConsume
}

// showProperty returns what may be shown of a client's property. Of an unknown
// property it is only the name, since the value may be a password.
func showProperty(text string) string {
	name, _, ok := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	switch p, known := properties[name]; {
	case !ok:
		return "(not shown)"
	case !known, p.secret:
		return name + "=(not shown)"
	}
	return text
}

// visibleProperty refuses a property that has a secret: others can see the command line.
func visibleProperty(text string) error {
	name, value, _ := strings.Cut(text, "=")
	name = strings.TrimSpace(name)
	secret := properties[name].secret && strings.TrimSpace(value) != ""
	switch name {
	case "sasl.oauthbearer.token.endpoint.url": // secret is a login in it
		secret = strings.Contains(value, "@")
	case "sasl.jaas.config": // a module without options has none
		_, options, err := parseJAAS(value)
		delete(options, "username")
		secret = secret && (err != nil || len(options) > 0)
	}
	if !secret {
		return nil
	}
	return &protocol.Error{
		Err:  fmt.Errorf("%s has a secret, which must not be on the command line, where others can see it", name),
		Hint: "put the property into a file that only you can read, and give --client-config FILE",
	}
}

// javaProfile contains the defaults of the Java producer 4.x
// (org.apache.kafka.clients.producer.ProducerConfig). Without a key it fills
// a partition's batch before it changes to the next partition; a key is hashed.
var javaProfile = map[string]string{
	"acks":             "all",
	"idempotent":       "true",
	"linger":           "5ms",
	"batch-size":       "16384",
	"compression":      "none",
	"max-in-flight":    "5",
	"max-request":      "1MiB",
	"buffer-memory":    "32MiB",
	"request-timeout":  "30s",
	"delivery-timeout": "2m",
	"partitioner":      "sticky",
}

// java1Profile contains the defaults of the Java producer 1.x (2017 to 2018).
// Without a key it is round-robin.
var java1Profile = map[string]string{
	"acks":            "1",
	"idempotent":      "false",
	"linger":          "0s",
	"batch-size":      "16384",
	"compression":     "none",
	"max-in-flight":   "5",
	"max-request":     "1MiB",
	"buffer-memory":   "32MiB",
	"request-timeout": "30s",
	// It has none: it gives up a batch after the request timeout without sending
	// it again. Here the batch is sent again until then.
	"delivery-timeout": "30s",
	"partitioner":      "roundrobin",
}

// presets returns what the options client-config, client-property and profile
// set, by the names of options and of the settings linger and max-in-flight;
// the properties themselves, for secrets and for those that preset no option;
// and a warning for each property that has no meaning here.
func presets(u *url.URL, v protocol.Values) (set, props map[string]string, warnings []string, err error) {
	set = map[string]string{}
	if (payload.Spec{Payload: v.String("payload"), Key: v.String("key"), Headers: v.List("header")}).Varies() {
		set["fresh"] = "true" // a pool would repeat the values of expressions
	}
	if v.Has("group") || v.Has("share-group") || v.Has("topics") && !isCount(v.String("topics")) || v.Bool("transactions") || v.Has("transactional-id") {
		set["engine"] = EngineClient // the other has none
	}
	if v.Has("clients-per-topic") {
		_, names, _, err := parseTarget(u, v)
		if err != nil {
			return nil, nil, nil, err
		}
		if each := v.Int("clients-per-topic"); each > 0 && each <= mostClients/len(names) {
			set["clients"] = strconv.Itoa(each * len(names))
		}
	}
	if text := v.String("create-topic"); text != "" {
		if _, err := ParseTopicSpec(text); err != nil {
			return nil, nil, nil, err
		}
	}
	switch p := v.String("profile"); p {
	case "":
	case "java", "java1":
		maps.Copy(set, map[string]map[string]string{"java": javaProfile, "java1": java1Profile}[p])
		if k := v.String("key"); k != "" && k != "none" {
			set["partitioner"] = "murmur2"
		}
	default:
		return nil, nil, nil, fmt.Errorf("profile %q: want java or java1", p)
	}
	props, err = ReadProperties(v.String("client-config"), v.List("client-property"))
	if err != nil {
		return nil, nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		p, known := properties[name]
		switch {
		case !known:
			warnings = append(warnings, fmt.Sprintf("the client property %s has no meaning here and is ignored", name))
		case p.option != "":
			_, text, err := PropertySetting(name, props[name])
			if err != nil {
				return nil, nil, nil, err
			}
			if err := checkOption(p.option, text); err != nil {
				return nil, nil, nil, fmt.Errorf("client property %s: %w", name, err)
			}
			set[p.option] = text
		}
	}
	return set, props, warnings, nil
}

// Presets returns what the options client-config, client-property and profile
// set in place of defaults: options of this kind, and the settings linger and
// max-in-flight of any workload; and warnings. Values that the user set (given)
// take precedence. Secrets are not included.
func Presets(u *url.URL, v protocol.Values, given map[string]bool) (map[string]string, []string, error) {
	set, props, warnings, err := presets(u, v)
	if err != nil {
		return nil, nil, err
	}
	warnings = append(warnings, reconcileAcks(set, props, v, given)...)
	idempotent := v.Bool("idempotent") || set["idempotent"] == "true" || v.Bool("transactions") || v.Has("transactional-id") || set["transactional-id"] != ""
	if idempotent {
		// The protocol requires these values of an idempotent producer. They
		// are preset unless the user sets others, which are refused later.
		for name, text := range map[string]string{"acks": "all", "max-in-flight": "5"} {
			if _, isSet := props[name]; !isSet && name == "acks" || set[name] == "" { // a profile's acks are overridden
				set[name] = text
			}
		}
	}
	if codec := v.String("compression"); given["compression"] && codec != "" && codec != "none" && v.String("payload") == "random" {
		warnings = append(warnings, "random values do not shrink, so nothing can be seen of "+codec+": add --payload text")
	}
	return set, warnings, nil
}

// reconcileAcks makes acks and idempotence consistent, as the Java client does:
// where the user requested only one of them, it overrides the other.
func reconcileAcks(set, props map[string]string, v protocol.Values, given map[string]bool) (warnings []string) {
	value := func(name string) string {
		if text := set[name]; text != "" && !given[name] {
			return text
		}
		return v.String(name)
	}
	isSet := func(option, property string) bool {
		_, ok := props[property]
		return ok || given[option]
	}
	switch {
	case value("idempotent") != "true" || value("acks") == "all":
	case !isSet("idempotent", "enable.idempotence"):
		set["idempotent"] = "false"
		return []string{"not idempotent, although the profile is: acks=" + value("acks") + " was given (the Java client does the same)"}
	case !isSet("acks", "acks"):
		byProfile := set["acks"] != "" // else only a default is overridden, which needs no warning
		set["acks"] = "all"
		if byProfile {
			return []string{"acks is all: an idempotent producer needs it"}
		}
	}
	return nil
}

// presetValues returns the spec's options with presets filled in where nothing
// was set explicitly, and the properties.
func presetValues(s protocol.Spec) (v protocol.Values, props map[string]string, warnings []string, err error) {
	set, props, warnings, err := presets(s.URL, s.Options)
	if err != nil {
		return nil, nil, nil, err
	}
	v = protocol.Values{}
	for _, o := range Options() {
		if o.Default != "" {
			v[o.Name] = []string{o.Default}
		}
	}
	for name, text := range s.Options {
		for _, t := range text {
			// The workload has checked them. A caller that opens a kind
			// directly gets an error instead of a panic of the getters.
			if err := checkOption(name, t); err != nil {
				return nil, nil, nil, fmt.Errorf("option %s: %w", name, err)
			}
		}
		if len(text) > 0 {
			v[name] = text
		}
	}
	warnings = append(warnings, reconcileAcks(set, props, v, s.Given)...)
	for name, text := range set {
		if !s.Given[name] {
			v[name] = []string{text}
		}
	}
	return v, props, warnings, nil
}

// checkOption checks a text against the option's row. The getters of
// protocol.Values panic on invalid text.
func checkOption(name, text string) error {
	for _, o := range Options() {
		if o.Name != name || text == "" {
			continue
		}
		if len(o.Choices) > 0 && !slices.Contains(o.Choices, text) {
			return fmt.Errorf("want one of %s", strings.Join(o.Choices, ", "))
		}
		return checkType(o.Type, text)
	}
	return nil
}
