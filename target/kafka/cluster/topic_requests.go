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
// each.
func CreateTopics(ctx context.Context, client *kgo.Client, specs []TopicSpec, timeout time.Duration) []error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	for _, s := range specs {
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, s.Partitions, s.Replicas
		if t.NumPartitions < 1 {
			t.NumPartitions = -1 // the broker's default (KIP-464)
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
	errs := slices.Repeat([]error{cmp.Or(err, ErrNoAnswer)}, len(specs))
	if err != nil {
		return errs
	}
	for _, t := range resp.Topics {
		if i := slices.IndexFunc(specs, func(s TopicSpec) bool { return s.Name == t.Topic }); i >= 0 {
			errs[i] = AnswerError(t.ErrorCode, t.ErrorMessage)
		}
	}
	return errs
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
