package cluster

import (
	"context"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
)

// mostBlocked limits the logs that a text names.
const mostBlocked = 3

// Blocked says why a reader gets nothing more: a reader of committed events gets nothing beyond the last stable
// offset, which stands where the oldest open transaction began.
func (p *Progress) Blocked(ctx context.Context) (string, error) {
	if !p.cl.Config.Fetch.Committed {
		return "", nil
	}
	stable, err := p.cl.Ends(ctx)
	if err != nil {
		return "", err
	}
	ends, err := p.Ends(ctx)
	if err != nil {
		return "", err
	}
	topics := kadm.TopicsSet{}
	var open []int // logs
	p.cl.EachLog(func(log int, topic string, partition int32) {
		if log < len(p.next) && stable[log] < ends[log] && p.Next(log) >= stable[log] {
			open = append(open, log)
			topics.Add(topic, partition)
		}
	})
	if len(open) == 0 {
		return "", nil
	}
	// Brokers before Kafka 2.8 cannot say whose transactions they are.
	producers, _ := p.cl.Admin.DescribeProducers(ctx, topics)
	var texts []string
	names := p.Logs()
	for _, log := range open[:min(len(open), mostBlocked)] {
		text := fmt.Sprintf("the last stable offset of %s stands at %d, before its end at %d, because of ", names[log], stable[log], ends[log])
		if id, ok := holder(producers, p.cl, log, stable[log]); ok {
			text += fmt.Sprintf("the open transaction of producer id %d", id)
		} else {
			text += "an open transaction"
		}
		texts = append(texts, text)
	}
	if n := len(open) - mostBlocked; n > 0 {
		texts = append(texts, fmt.Sprintf("and so in %d more", n))
	}
	return strings.Join(texts, "; "), nil
}

// holder is the producer whose open transaction began first in a log, at the last stable offset or before.
func holder(of kadm.DescribedProducersTopics, cl *Cluster, log int, stable int64) (id int64, ok bool) {
	first := stable + 1
	cl.EachLog(func(i int, topic string, partition int32) {
		if i != log {
			return
		}
		of[topic].Partitions[partition].ActiveProducers.Each(func(d kadm.DescribedProducer) {
			if at := d.CurrentTxnStartOffset; at >= 0 && at < first {
				first, id, ok = at, d.ProducerID, true
			}
		})
	})
	return id, ok
}
