package bench

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit/kafkatest"
)

// startBroker starts one real node. Its disk influences the results as little as
// possible, because its speed is not the clients': segments of a gigabyte, Kafka's
// default, are not rolled (and so not flushed) during a run, and the records of a
// run are deleted before the next one, mostly before they leave the page cache.
func startBroker(b testing.TB) *kafkatest.Cluster {
	b.Helper()
	return kafkatest.Start(b, kafkatest.Config{Properties: map[string]string{
		"log.segment.bytes":           "1073741824",
		"log.segment.delete.delay.ms": "100",
		"log.retention.bytes":         "-1",
	}})
}

// syncDisks waits until all data are on the disk. Without sync(1), the first round
// may share the disk with the writing of earlier data.
func syncDisks(ctx context.Context) { _, _ = runProcess(ctx, false, "sync") }

// withTopic runs a contestant on a new topic, and waits until the topic is deleted.
func withTopic(b testing.TB, c *kafkatest.Cluster, name string, run func(topic string) contestant) contestant {
	return contestant{name, func(ctx context.Context) (sample, error) {
		topic := c.CreateTopic(b, partitions, 1)
		s, err := run(topic).run(ctx)
		if _, deleteErr := c.Admin(b).DeleteTopics(ctx, topic); deleteErr != nil && err == nil {
			err = fmt.Errorf("delete the topic: %w", deleteErr)
		}
		if err == nil {
			err = awaitDeleted(ctx, c.Node(1).DataDir(), topic)
		}
		return s, err
	}}
}

// awaitDeleted waits until a topic's partitions are deleted from the disk.
func awaitDeleted(ctx context.Context, dir, topic string) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return fmt.Errorf("look for the topic's partitions: %w", err)
		}
		left := 0
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), topic) {
				left++
			}
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait until the topic's %d partitions are deleted: %w", left, ctx.Err())
		case <-tick.C:
		}
	}
}

func (u *Suite) produceBroker(b testing.TB) {
	c := startBroker(b)
	n := u.records(2_000_000)
	url := func(topic string) string { return "kafka://" + c.Bootstrap() + "/" + topic }
	wire := func(topic string) contestant {
		return u.producer(carronade, "real broker, 1 KiB, carronade", url(topic), "--size", "1KiB", "--count", strconv.Itoa(n))
	}
	if _, err := withTopic(b, c, carronade, wire).run(b.Context()); err != nil { // warms up the broker's JVM
		b.Fatal("bench: warm the broker up: ", err)
	}
	syncDisks(b.Context())
	r := u.alternate(b.Context(), "produce to a real broker, 1 KiB, acks=1",
		withTopic(b, c, carronade, wire),
		withTopic(b, c, producerPerf, func(topic string) contestant {
			return u.javaProducer(b, "real broker, 1 KiB, "+producerPerf, c.Bootstrap(), topic, 1024, n, perfBroker)
		}),
		withTopic(b, c, kgoBare, func(topic string) contestant {
			return u.kgoProducer(c.Bootstrap(), topic, 1024, u.scaled(5*time.Second))
		}),
		withTopic(b, c, kcat, func(topic string) contestant {
			return u.kcatProducer("real broker, 1 KiB, kcat", c.Bootstrap(), topic, 1024, n/2)
		}),
	)
	peers := []string{producerPerf, kgoBare, kcat}
	best := r.best(eventsPerS, peers...)
	u.addComparison(r, carronade, best, eventsPerS, atLeast(0.95), atLeast(1)).Peer += " (the best)"
	u.addComparison(r, carronade, kgoBare, cpuPerEvent, atMost(1.0/2), bound{})
	u.addComparison(r, carronade, producerPerf, cpuPerEvent, atMost(1.0/5), bound{})
	for _, p := range peers {
		if p != best {
			u.addComparison(r, carronade, p, eventsPerS, bound{}, bound{})
		}
	}
	u.addComparison(r, carronade, kcat, cpuPerEvent, bound{}, bound{})
}

func (u *Suite) consumeBroker(b testing.TB) {
	c := startBroker(b)
	n := u.records(30_000_000)
	topic := c.CreateTopic(b, partitions, 1)
	// The peer's producer fills the topic, so that the batches are as it makes them.
	if _, err := u.javaProducer(b, "real broker, filled by "+producerPerf, c.Bootstrap(), topic, 100, n, perfBroker).run(b.Context()); err != nil {
		b.Fatal("bench: fill the topic: ", err)
	}
	consume := contestant{carronade, func(ctx context.Context) (sample, error) {
		d, e, err := u.runProgram(ctx, "consume, carronade", "kafka://"+c.Bootstrap()+"/"+topic, "--op", "consume", "--from", "earliest", "--count", strconv.Itoa(n))
		if err != nil {
			return nil, err
		}
		if d.Totals.Consumed < uint64(n) {
			return nil, fmt.Errorf("it read %d of %d events", d.Totals.Consumed, n)
		}
		return sample{eventsPerS: d.Totals.EventsPS, bytesPerS: d.Totals.BytesPS}.cpu(e, d.Totals.Consumed), nil
	}}
	syncDisks(b.Context())
	if _, err := consume.run(b.Context()); err != nil { // warms up the broker's JVM and the page cache
		b.Fatal("bench: warm the broker up: ", err)
	}
	r := u.alternate(b.Context(), "consume from a real broker, 100 B", consume, u.javaConsumer(b, "consume, "+consumerPerf, c.Bootstrap(), topic, n))
	u.addComparison(r, carronade, consumerPerf, eventsPerS, atLeast(5), bound{}).Peer += ", while fetching"
	u.addComparisonOf(r, carronade, eventsPerS, consumerPerf, wholeRate, bound{}, bound{})
	u.addComparison(r, carronade, consumerPerf, cpuPerEvent, atMost(1.0/5), bound{})
}
