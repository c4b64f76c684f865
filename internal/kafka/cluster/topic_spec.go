package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"carronade/protocol"
)

// A TopicSpec describes a topic to create. If Partitions or Replicas is below 1,
// the broker chooses the number.
type TopicSpec struct {
	Name       string
	Partitions int32
	Replicas   int16
	Config     [][2]string // topic settings, such as {"retention.ms", "1000"}, sorted by name
}

// specForm shows how a TopicSpec is written.
const specForm = "partitions=12,replicas=3,retention.ms=60000"

// ParseTopicSpec reads "partitions=12,replicas=3,k=v,...". Everything but
// partitions and replicas is a setting of the topic; "config." before its name
// is optional. "auto" sets nothing: the broker's defaults apply.
func ParseTopicSpec(s string) (TopicSpec, error) {
	spec := TopicSpec{Partitions: -1, Replicas: -1}
	bad := func(part, why string) error {
		if part != s { // one of several
			why = fmt.Sprintf("%q: %s", part, why)
		}
		return &protocol.Error{Doing: fmt.Sprintf("read the topic's settings %q", s), Err: errors.New(why), Hint: "write it as " + specForm}
	}
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if part == "" || part == "auto" { // the broker's defaults
			continue
		}
		k, v, ok := strings.Cut(part, "=")
		k, v = strings.TrimSpace(k), strings.TrimSpace(v)
		if !ok || k == "" {
			// A value with commas, such as cleanup.policy=compact,delete.
			if n := len(spec.Config); n > 0 && !ok {
				spec.Config[n-1][1] += "," + part
				continue
			}
			return spec, bad(part, "want name=value")
		}
		switch k {
		case "partitions":
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 1 {
				return spec, bad(part, "want a number of at least 1")
			}
			spec.Partitions = int32(n)
		case "replicas":
			n, err := strconv.ParseInt(v, 10, 16)
			if err != nil || n < 1 {
				return spec, bad(part, "want a number of at least 1")
			}
			spec.Replicas = int16(n)
		default:
			k = strings.TrimPrefix(k, "config.")
			if hint := wrongTopicSetting(k); hint != "" {
				return spec, bad(part, "Kafka has no setting "+k+" of topics"+hint)
			}
			spec.Config = append(spec.Config, [2]string{k, v})
		}
	}
	slices.SortFunc(spec.Config, func(a, b [2]string) int { return strings.Compare(a[0], b[0]) })
	return spec, nil
}

// topicSettings are Kafka's settings of topics. Other brokers, and later releases of Kafka, have more.
var topicSettings = strings.Fields(`cleanup.policy compression.type compression.gzip.level compression.lz4.level compression.zstd.level
	delete.retention.ms errors.deadletterqueue.group.enable file.delete.delay.ms flush.messages flush.ms
	follower.replication.throttled.replicas index.interval.bytes leader.replication.throttled.replicas local.retention.bytes
	local.retention.ms max.compaction.lag.ms max.message.bytes message.downconversion.enable message.format.version
	message.timestamp.after.max.ms message.timestamp.before.max.ms message.timestamp.difference.max.ms message.timestamp.type
	min.cleanable.dirty.ratio min.compaction.lag.ms min.insync.replicas preallocate remote.log.copy.disable
	remote.log.delete.on.disable remote.storage.enable retention.bytes retention.ms segment.bytes segment.index.bytes
	segment.jitter.ms segment.ms unclean.leader.election.enable`)

// wrongTopicSetting returns what is wrong with the name of a topic's setting; "" if it may be one.
func wrongTopicSetting(name string) string {
	if slices.Contains(topicSettings, name) {
		return ""
	}
	for _, known := range append([]string{"partitions", "replicas"}, topicSettings...) {
		if mistyped(name, known) {
			return "; did you mean " + known + "?"
		}
	}
	if !strings.Contains(name, ".") { // only preallocate has none
		return "; it has " + strings.Join(topicSettings, ", ")
	}
	return "" // the broker decides
}

// mistyped reports whether two names differ in one place, by one or two letters.
func mistyped(a, b string) bool {
	const most = 2
	if len(a) < len(b) {
		a, b = b, a
	}
	n := 0
	for n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	return len(a) > 0 && len(a) <= most
}

// String returns the text that ParseTopicSpec reads.
func (t TopicSpec) String() string {
	var parts []string
	if t.Partitions > 0 {
		parts = append(parts, fmt.Sprintf("partitions=%d", t.Partitions))
	}
	if t.Replicas > 0 {
		parts = append(parts, fmt.Sprintf("replicas=%d", t.Replicas))
	}
	for _, kv := range t.Config {
		parts = append(parts, kv[0]+"="+kv[1])
	}
	return strings.Join(parts, ",")
}
