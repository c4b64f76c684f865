package omb

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/kafka/cluster"
	"carronade/internal/place"
	"carronade/internal/workload"
	"carronade/units"
)

// A pair is a workload with a driver: one run.
type pair struct {
	*spec
	*driver
	a      *arguments
	strict bool
	suffix string  // of the names of topics
	found  float64 // the rate that was searched, events a second
}

const (
	topicPrefix = "test-topic"
	// printEvery is how often there is a line.
	printEvery = 10 * time.Second
	// mostClients bounds the clients of a machine: each has connections to all brokers, and memory.
	mostClients = 1000
	// mostPool bounds the different messages of all clients.
	mostPool = 64 << 20
	// otherKeys is how many keys there are, and keyDigits the length of each.
	otherKeys = 10_000
	keyDigits = 10
	// leastShare is the share of a backlog that is drained at once: a run takes no 0.
	leastShare = 1e-9
	// longest is the longest time that a run can wait for a backlog, and go on after it.
	longest = 366 * 24 * time.Hour
)

// target is the URL of the topics.
func (r *pair) target() string {
	numbers := fmt.Sprintf("%07d", 0)
	if r.topics > 1 {
		numbers = fmt.Sprintf("{%07d..%07d}", 0, r.topics-1)
	}
	return fmt.Sprintf("kafka://%s/%s-%s-%s", r.servers, topicPrefix, numbers, r.suffix)
}

// rounded is the rate in events a second. The tool rounds the time between two events to nanoseconds.
func (r *pair) rounded() float64 {
	if !r.strict || r.rate == 0 {
		return float64(r.spec.rate)
	}
	return 1e9 / max(1, math.Round(1e9/float64(r.spec.rate)))
}

// minutes is a time. The tool takes whole minutes.
func (r *pair) minutes(m float64) time.Duration {
	if r.strict {
		m = math.Trunc(m)
	}
	return time.Duration(m * float64(time.Minute)).Round(time.Millisecond)
}

// every is the time between two lines: shorter for a run that is shorter than a line's.
func (r *pair) every() time.Duration {
	if lasts := r.minutes(r.lasts); lasts > 0 && lasts < printEvery {
		return time.Second
	}
	return printEvery
}

// clients is the number of producers, which is bounded.
func (r *pair) clients() (n int, bounded bool) {
	n = r.topics * r.producers
	return min(n, mostClients), n > mostClients
}

// draft translates the pair to a workload.
func (r *pair) draft() (*dropin.Draft, error) {
	d, err := r.base()
	if err != nil {
		return nil, err
	}
	if r.spec.rate > 0 {
		d.SetRate("producerRate", r.rounded())
	} else if r.found > 0 {
		d.SetRate("producerRate", r.found)
	}
	if warmup := r.minutes(r.warmup); warmup > 0 {
		d.Set("warmup", "warmupDurationMinutes", shortNumber(warmup.Seconds())+"s") // 1m is a million events, too
	}
	if lasts := r.minutes(r.lasts); lasts > 0 && r.waiting() == 0 { // a backlog ends the run
		d.Set("for", "testDurationMinutes", units.FlagDuration(lasts))
	}
	d.Set("interval", "its lines", units.FlagDuration(r.every()))
	d.Set("percentiles", "its lines", "75")
	return d, nil
}

// base is the workload without what a search decides.
func (r *pair) base() (*dropin.Draft, error) {
	var d dropin.Draft
	d.Set("target", "topics", r.target())
	d.Set("create-topic", "partitionsPerTopic", r.createTopic())
	d.Set("profile", "driverClass", "java")
	if err := r.clientSettings(&d); err != nil {
		return nil, err
	}
	if err := r.supported(); err != nil {
		return nil, err
	}
	if err := r.events(&d); err != nil {
		return nil, err
	}
	r.readers(&d)
	switch n, bounded := r.clients(); {
	case bounded:
		d.Set("clients", "producersPerTopic", strconv.Itoa(n))
	case r.topics > 1:
		d.Set("clients-per-topic", "producersPerTopic", strconv.Itoa(r.producers))
	case n > 1:
		d.Set("clients", "producersPerTopic", strconv.Itoa(n))
	}
	d.Set("label", "name", "omb-workload="+label(r.spec.name))
	d.Set("label", "name", "omb-driver="+label(r.driver.name))
	return &d, nil
}

// label is a text as the value of a label.
func label(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\n", " ")) }

// createTopic is the setting of the same name.
func (r *pair) createTopic() string {
	parts := []string{fmt.Sprintf("partitions=%d,replicas=%d", r.partitions, r.replicas)}
	for _, name := range slices.Sorted(maps.Keys(r.topic)) {
		parts = append(parts, name+"="+r.topic[name])
	}
	return strings.Join(parts, ",")
}

// clientSettings are the clients' properties: settings where there are some, and else properties. The tool's client
// sends without a linger unless a property names one.
func (r *pair) clientSettings(d *dropin.Draft) error {
	if _, ok := r.property("linger.ms"); !ok {
		d.Set("linger", "driverClass", "0s")
	}
	if r.a.engine != "" {
		d.Set("engine", "--engine", r.a.engine)
	}
	for _, p := range r.properties {
		option, text, err := cluster.PropertySetting(p.name, p.value)
		switch {
		case err != nil:
			return fmt.Errorf("%s: %s: %w", r.driver.file, p.field, err)
		case option == "":
			d.Set("client-property", p.field, p.name+"="+p.value)
		case text != "" && cluster.PropertyApplies(p.name, r.op()):
			d.Set(option, p.field, text)
		}
	}
	return nil
}

// connection are the clients' properties for an operation on topics.
func (r *pair) connection(d *dropin.Draft) {
	for _, p := range r.properties {
		if option, _, err := cluster.PropertySetting(p.name, p.value); err == nil && option == "" {
			d.Set("client-property", p.field, p.name+"="+p.value)
		}
	}
}

// events are sizes, contents and keys.
func (r *pair) events(d *dropin.Draft) error {
	switch {
	case !r.random && len(r.a.workers) > 0: // workers open no files for others
		d.Set("size", "messageSize", strconv.Itoa(r.size))
		d.Set("payload", "payloadFile", "random")
	case !r.random:
		data, err := place.ReadFile(r.payload)
		if err != nil {
			return fmt.Errorf("%s: payloadFile: %w", r.spec.file, err)
		}
		how := "file:" + r.payload
		if bytes.ContainsRune(data, '\n') { // the whole file is one message
			how = "file(" + r.payload + `,match=[^\x00-\x{10FFFF}])`
		}
		d.Set("payload", "payloadFile", how)
	default:
		d.Set("size", "messageSize", strconv.Itoa(r.size))
		d.Set("payload", "randomBytesRatio", r.contents())
		clients, _ := r.clients()
		if most := mostPool / clients; r.pool*r.size > 1<<20 && most > 1<<20 {
			d.Set("pool", "randomizedPayloadPoolSize", strconv.Itoa(min(r.pool*r.size, most)))
		}
	}
	switch r.keys {
	case keyRoundRobin:
		d.Setf("key", "keyDistributor", "key-0${(this.last() + 1) %% %[1]d + %[1]d}%%{%d}", otherKeys, otherKeys-1)
	case randomNano:
		d.Setf("key", "keyDistributor", "uniform(%d,%d)", otherKeys, keyDigits)
	}
	return nil
}

// contents is the setting payload for messages of random bytes and zeros.
func (r *pair) contents() string {
	switch {
	case r.ratio >= 1:
		return "random"
	case r.ratio < 0.02:
		return "zero"
	}
	return fmt.Sprintf("compressible(%s)", shortNumber(r.ratio))
}

// op is the operation: without consumers, only producing.
func (r *pair) op() string {
	if r.groups == 0 {
		return workload.Produce
	}
	return workload.RoundTrip
}

// readers are the consumers. Without a backlog and with one consumer they are those of any round trip.
func (r *pair) readers(d *dropin.Draft) {
	d.Set("op", "subscriptionsPerTopic", r.op())
	if r.groups == 0 {
		return
	}
	if r.groups > 1 || r.consumers > 1 || r.a.engine == "client" {
		d.Set("groups", "subscriptionsPerTopic", strconv.Itoa(r.groups))
		d.Set("members", "consumerPerSubscription", strconv.Itoa(r.consumers))
	}
	if r.waiting() == 0 {
		return
	}
	kib := int64(max(1, r.waiting()/1024/float64(r.groups))) // whole KiB, since 5B is also five billion events
	d.Set("backlog", "consumerBacklogSizeGB", units.FlagSize(kib<<10))
	d.Set("backlog-drained", "backlogDrainRatio", shortNumber(math.Round(r.share()*1e9)/1e7)+"%")
	lasts := r.minutes(r.lasts)
	if lasts == 0 { // until it is interrupted
		lasts = longest
	}
	d.Set("backlog-after", "testDurationMinutes", units.FlagDuration(lasts))
	if r.strict { // the tool waits without end
		d.Set("drain-timeout", "backlogDrainRatio", units.FlagDuration(longest))
	}
}

// waiting is the size of the backlog of all groups together, in bytes. The tool takes whole GiB.
func (r *pair) waiting() float64 {
	if r.strict {
		return math.Trunc(r.backlog) * (1 << 30)
	}
	return r.backlog * (1 << 30)
}

// share is how much of a backlog is to be read. The tool takes the last thousand messages of all groups for none.
func (r *pair) share() float64 {
	messages := r.waiting() / float64(r.size)
	return max(leastShare, min(r.drained, 1-1000/messages))
}

// supported refuses what this program cannot do.
func (r *pair) supported() error {
	switch {
	case r.spec.rate == 0 && len(r.a.workers) > 0:
		return &advice.Error{Err: fmt.Errorf("%s: producerRate: 0 cannot be searched with --workers", r.spec.file), Hint: "search with carronade find --fleet, and give the rate that it found"}
	case r.waiting() > 0 && len(r.a.workers) > 0:
		return &advice.Error{
			Err:  fmt.Errorf("%s: consumerBacklogSizeGB: with --workers no backlog can be built", r.spec.file),
			Hint: "run it without --workers, or give 0",
		}
	case len(r.a.workers) > 0 && (r.groups > 1 || r.consumers > 1):
		return &advice.Error{
			Err:  fmt.Errorf("%s: with --workers one machine reads what the others send, with one consumer", r.spec.file),
			Hint: "run it without --workers, or give subscriptionsPerTopic: 1 and consumerPerSubscription: 1",
		}
	}
	return nil
}
