package kafkatools

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/dropin"
)

// latencyOptions are the options of 4.2 and later. Earlier tools had only six positional
// arguments, which correspond to some of them.
var latencyOptions = []joptOption{
	{name: "bootstrap-server", word: "bootstrap-server", help: "REQUIRED: The brokers, HOST1:PORT1,HOST2:PORT2."},
	{name: "topic", word: "topic-name", help: "REQUIRED: The topic to use."},
	{name: "num-records", kind: integerValue, word: "count", help: "REQUIRED: How many messages to send."},
	{name: "producer-acks", word: "producer-acks", help: "REQUIRED: 1 or all."},
	{name: "record-size", kind: integerValue, word: "bytes", help: "REQUIRED: The size of a message."},
	{name: "command-config", kind: optionalText, word: "config-file", help: "A properties file of both clients."},
	{name: "record-key-size", kind: optionalInteger, word: "bytes", otherwise: "0", help: "The size of a message's key, up to 15 (default: no key)."},
	{name: "num-headers", kind: optionalInteger, word: "count", otherwise: "0", help: "Number of headers of a message."},
	{name: "record-header-key-size", kind: optionalInteger, word: "bytes", otherwise: "0", help: "The size of a header's name, 1 at least."},
	{name: "record-header-size", kind: optionalInteger, word: "bytes", otherwise: "0", help: "The size of a header's value; -1 (null) sends an empty value here."},
	{name: "help", kind: noValue, help: "Print this."},
	{name: "version", kind: noValue, help: "Display the version."},
}

// latencyPositional are the options that positional arguments stand for, in order.
var latencyPositional = []string{"bootstrap-server", "topic", "num-records", "producer-acks", "record-size", "command-config"}

// longestKey is the maximum length of a key; keys are decimal numbers.
const longestKey = 15

// latencySettings are the values of a command line.
type latencySettings struct {
	brokers, topic, acks string
	count, size          int64
	keySize              int64
	headerCount          int64
	headerNameSize       int64
	headerValueSize      int64
	props                *properties
}

// latencyNamed reports whether a command line has named arguments, that is, one of the
// required ones.
func latencyNamed(args []string) bool {
	return slices.ContainsFunc(args, func(arg string) bool {
		name, _, _ := strings.Cut(arg, "=")
		return slices.Contains(latencyPositional[:5], strings.TrimPrefix(name, "--")) && strings.HasPrefix(name, "--")
	})
}

// fromPositional converts positional arguments to named ones.
func fromPositional(args []string) []string {
	var out []string
	for i, arg := range args {
		if i < 5 || strings.TrimSpace(arg) != "" {
			out = append(out, "--"+latencyPositional[i]+"="+arg)
		}
	}
	return out
}

// checkEarly checks positional arguments with the messages of the tools that took
// no others: those of a JVM that exits.
func checkEarly(g kafkaGeneration, args []string) error {
	thrown := func(class, format string, a ...any) error {
		text := fmt.Sprintf(format, a...)
		if g == of2018 {
			return &dropin.Exception{Class: "java.lang." + class, Text: text}
		}
		return errors.New(text) // 4.1 printed the text, then the stack
	}
	var n [2]int64
	for i, text := range []string{args[2], args[4]} {
		var err error
		if n[i], err = strconv.ParseInt(text, 10, 32); err != nil {
			return thrown("NumberFormatException", "For input string: %q", text)
		}
	}
	switch acks := args[3]; {
	case acks != "1" && acks != "all":
		return thrown("IllegalArgumentException", "Latency testing requires synchronous acknowledgement. Please use 1 or all")
	case n[0] < 0:
		return thrown("NegativeArraySizeException", "%d", n[0])
	case n[1] < 0:
		return thrown("NegativeArraySizeException", "%d", n[1])
	case n[0] == 0: // the tool failed at the end
		return thrown("ArrayIndexOutOfBoundsException", "Index 0 out of bounds for length 0: there are no messages to measure")
	}
	return nil
}

// checkLatency checks the options, with the tool's messages.
func checkLatency(v *joptValues) error {
	if err := v.missing(latencyPositional[:5]...); err != nil {
		return err
	}
	for _, rule := range []struct {
		name  string
		least int64
		words string
	}{
		{"num-records", 1, "must be a positive integer."},
		{"record-size", 0, "must be a non-negative integer."},
		{"record-key-size", 0, "must be a non-negative integer."},
		{"num-headers", 0, "must be a non-negative integer."},
		{"record-header-key-size", 0, "must be a non-negative integer."},
		{"record-header-size", -1, "must be a non-negative integer or -1 for null header value."},
	} {
		n, err := v.number(rule.name)
		if err != nil {
			return errParse{err}
		}
		if n < rule.least {
			return fmt.Errorf("Value for --%s %s", rule.name, rule.words)
		}
	}
	acks, err := v.text("producer-acks")
	if err == nil && acks != "1" && acks != "all" {
		err = errors.New("Invalid value for --producer-acks. Latency testing requires synchronous acknowledgement. Please use '1' or 'all'.") //nolint:revive // the tool's message
	}
	return err
}

// errParse is an error that is printed without the options.
type errParse struct{ error }

// readLatency reads the options' values after checkLatency.
func readLatency(v *joptValues) (*latencySettings, error) {
	r := &joptReader{joptValues: v}
	s := latencySettings{
		brokers: r.servers(r.text("bootstrap-server")), topic: r.text("topic"), acks: r.text("producer-acks"),
		count: r.number("num-records"), size: r.number("record-size"), keySize: r.number("record-key-size"),
		headerCount: r.number("num-headers"), headerNameSize: r.number("record-header-key-size"), headerValueSize: r.number("record-header-size"),
	}
	file := r.text("command-config")
	if r.err != nil {
		return nil, r.err
	}
	if strings.TrimSpace(s.topic) == "" {
		return nil, fmt.Errorf("The given topic name '%s' cannot be represented in a request.", s.topic) //nolint:revive // the client's message
	}
	if err := CheckTopic(s.topic); err != nil {
		return nil, err
	}
	var err error
	s.props, err = readProperties(file, nil)
	return &s, err
}

// warn names the arguments with another meaning than in the tool.
func (s *latencySettings) warn(w io.Writer, rest []string) {
	for _, arg := range rest {
		fmt.Fprint(w, unknownOption(arg))
	}
	if s.keySize > longestKey {
		fmt.Fprintf(w, "warning: --record-key-size %d: keys have %d bytes, the maximum here\n", s.keySize, longestKey)
	}
	if s.headerCount > 0 && s.headerNameSize == 0 {
		fmt.Fprintln(w, "warning: --record-header-key-size 0: names of headers have one byte, the minimum here")
	}
	if s.headerCount > 0 && s.headerValueSize < 0 {
		fmt.Fprintln(w, "warning: --record-header-size -1: values of headers are empty, not null")
	}
	s.props.warn(w, "roundtrip")
	for _, name := range []string{"bootstrap.servers", "acks", "linger.ms", "fetch.max.wait.ms", "auto.offset.reset", "group.id"} {
		if _, ok := s.props.get(name); ok {
			fmt.Fprintf(w, "warning: the tool's own setting overrides the client property %s\n", name)
		}
	}
}

// workload translates the settings to a workload: one caller, whose event comes
// back before it sends the next.
func (s *latencySettings) workload() *dropin.Draft {
	const tool = "kafka-e2e-latency"
	var d dropin.Draft
	d.Setf("target", "--bootstrap-server", "kafka://%s/%s", s.brokers, s.topic)
	for _, set := range [][2]string{
		{"op", "roundtrip"},
		{"concurrency", "1"},
		{"batch-events", "1"},
		{"linger", "0s"},
		{"fetch-wait", "0s"},
		{"drain", "60s"},
		{"idle-timeout", "60s"},
		{"payload", "letters"},
		{"fresh", "true"},
		{"verify", "true"},
		{"create-topic", "partitions=1,replicas=1"},
	} {
		d.Set(set[0], tool, set[1])
	}
	d.Set("acks", "--producer-acks", s.acks)
	d.Setf("count", "--num-records", "%d", s.count)
	d.Setf("size", "--record-size", "%d", s.size)
	if s.keySize > 0 {
		d.Setf("key", "--record-key-size", "uniform(%.0f)", math.Pow(10, float64(min(s.keySize, longestKey))))
		d.Set("partitioner", tool, "murmur2")
	}
	for i := range s.headerCount {
		letter := string(rune('A' + i%26))
		d.Set("header", "--num-headers", strings.Repeat(letter, int(max(s.headerNameSize, 1)))+"="+strings.Repeat(letter, int(max(s.headerValueSize, 0))))
	}
	s.props.set(&d, "--command-config", "")
	return &d
}
