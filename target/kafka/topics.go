package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// createTopics makes topics by one request and returns an error, or nil, for
// each.
func createTopics(ctx context.Context, client *kgo.Client, specs []TopicSpec, timeout time.Duration) []error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	index := map[string]int{}
	errs := make([]error, len(specs))
	for i, s := range specs {
		index[s.Name] = i
		t := kmsg.NewCreateTopicsRequestTopic()
		t.Topic, t.NumPartitions, t.ReplicationFactor = s.Name, s.Partitions, s.Replicas
		if t.NumPartitions < 1 {
			t.NumPartitions = -1 // as the broker likes (KIP-464)
		}
		if t.ReplicationFactor < 1 {
			t.ReplicationFactor = -1
		}
		for _, kv := range s.Config {
			c := kmsg.NewCreateTopicsRequestTopicConfig()
			c.Name, c.Value = kv[0], kmsg.StringPtr(kv[1])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
		errs[i] = fmt.Errorf("the broker did not answer for topic %s", s.Name)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		for i := range errs {
			errs[i] = err
		}
		return errs
	}
	for _, t := range resp.Topics {
		if i, ok := index[t.Topic]; ok {
			errs[i] = withMessage(kerr.ErrorForCode(t.ErrorCode), t.ErrorMessage)
		}
	}
	return errs
}

// withMessage joins a broker's error with its own words about it.
func withMessage(err error, message *string) error {
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}
