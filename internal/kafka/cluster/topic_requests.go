package cluster

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// ErrNoAnswer is the error of a topic that is missing in an answer.
var ErrNoAnswer = errors.New("the broker did not answer for the topic")

// CreateTopics creates topics with one request and returns an error, or nil, for
// each. A number of partitions or replicas below 1 is the brokers' default. Brokers know
// that since Kafka 2.4 (KIP-464); older ones refuse it, and then their default is read and
// those topics are requested again.
func CreateTopics(ctx context.Context, client *kgo.Client, specs []TopicSpec, timeout time.Duration) []error {
	errs, version := requestTopics(ctx, client, specs, timeout)
	if version < 0 || version >= 4 {
		return errs
	}
	var again []TopicSpec
	var at []int
	var usual TopicSpec
	for i, s := range specs {
		if s.Partitions >= 1 && s.Replicas >= 1 || !errors.Is(errs[i], kerr.InvalidPartitions) && !errors.Is(errs[i], kerr.InvalidReplicationFactor) {
			continue
		}
		if again == nil {
			usual = brokerDefaults(ctx, client)
		}
		s.Partitions, s.Replicas = max(s.Partitions, usual.Partitions), max(s.Replicas, usual.Replicas)
		again, at = append(again, s), append(at, i)
	}
	if again != nil {
		later, _ := requestTopics(ctx, client, again, timeout)
		for i, err := range later {
			errs[at[i]] = err
		}
	}
	return errs
}

// brokerDefaults are the numbers of partitions and replicas that a broker gives to a new topic; 1 and
// 1, as Kafka's own defaults are, where it may not be read.
func brokerDefaults(ctx context.Context, client *kgo.Client) TopicSpec {
	usual := TopicSpec{Partitions: 1, Replicas: 1}
	brokers, err := kadm.NewClient(client).ListBrokers(ctx)
	if err != nil || len(brokers) == 0 {
		return usual
	}
	answers, err := kadm.NewClient(client).DescribeBrokerConfigs(ctx, brokers[0].NodeID)
	if err != nil || len(answers) != 1 {
		return usual
	}
	for _, c := range answers[0].Configs {
		if n, err := strconv.ParseInt(c.MaybeValue(), 10, 32); err == nil && n >= 1 {
			switch c.Key {
			case "num.partitions":
				usual.Partitions = int32(n)
			case "default.replication.factor":
				usual.Replicas = int16(n)
			}
		}
	}
	return usual
}

// requestTopics sends one request. It also returns the request's version; -1: there was no answer.
func requestTopics(ctx context.Context, client *kgo.Client, specs []TopicSpec, timeout time.Duration) (errs []error, version int16) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, s.Partitions, s.Replicas
		if t.NumPartitions < 1 {
			t.NumPartitions = -1 // the broker's default
		}
		if t.ReplicationFactor < 1 {
			t.ReplicationFactor = -1
		}
		for _, kv := range s.Config {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = kv[0], new(kv[1])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	errs = slices.Repeat([]error{cmp.Or(err, ErrNoAnswer)}, len(specs))
	if err != nil {
		return errs, -1
	}
	for _, t := range resp.Topics {
		if i := slices.IndexFunc(specs, func(s TopicSpec) bool { return s.Name == t.Topic }); i >= 0 {
			errs[i] = AnswerError(t.ErrorCode, t.ErrorMessage)
		}
	}
	return errs, resp.Version
}

// AnswerError is the error of an answer with a code and a broker's message; nil: it
// succeeded.
func AnswerError(code int16, message *string) error {
	err := kerr.ErrorForCode(code)
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}

// TopicSettings returns the settings that were changed for a topic, and those that
// affect its speed.
func TopicSettings(configs []kadm.Config) map[string]string {
	set := map[string]string{}
	for _, kv := range configs {
		own := kv.Source == kmsg.ConfigSourceDynamicTopicConfig
		if !kv.Sensitive && kv.Value != nil && (own || slices.Contains(performanceSettings, kv.Key)) {
			set[kv.Key] = *kv.Value
		}
	}
	return set
}

// performanceSettings are the settings of a topic that affect its performance.
var performanceSettings = []string{
	"cleanup.policy", "compression.type", "max.message.bytes", "message.timestamp.type", "min.insync.replicas",
	"flush.messages", "flush.ms", "segment.bytes", "retention.bytes", "retention.ms", "unclean.leader.election.enable",
}

// Layout lists which broker leads which partitions, in bounded space:
// "1: 0 3 6, 2: 1 4 7, 3: 2 5 8". Of many partitions it lists the first, and appends a
// hash of all, so that different layouts have different texts.
func Layout(leaders []int32) string {
	const shown = 64
	led := map[int32][]string{}
	for p, l := range leaders {
		if p == shown {
			break
		}
		led[l] = append(led[l], fmt.Sprint(p))
	}
	var parts []string
	for _, l := range slices.Sorted(maps.Keys(led)) {
		leader := fmt.Sprint(l)
		if l < 0 {
			leader = "none"
		}
		parts = append(parts, leader+": "+strings.Join(led[l], " "))
	}
	text := strings.Join(parts, ", ")
	if n := len(leaders); n > shown {
		sum := fnv.New64a()
		for _, l := range leaders {
			_ = binary.Write(sum, binary.BigEndian, l) // cannot fail
		}
		text += fmt.Sprintf(" (the first %d of %d; #%012x of all)", shown, n, sum.Sum64()>>16)
	}
	return text
}
