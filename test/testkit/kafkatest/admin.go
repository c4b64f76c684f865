package kafkatest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"carronade/test/testkit/assert"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// adminTimeout bounds one administrative operation, retries included.
const adminTimeout = time.Minute

func (c *Cluster) withAdmin(t testing.TB, doing string, f func(context.Context, *kadm.Client) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), adminTimeout)
	defer cancel()
	adm, err := c.client()
	if err == nil {
		err = f(ctx, adm)
	}
	assert.OK(t, err, "kafkatest: %s", doing)
}

// Admin returns an administrator's client, for operations without a method here. It
// is closed with the cluster.
func (c *Cluster) Admin(t testing.TB) *kadm.Client {
	t.Helper()
	adm, err := c.client()
	assert.OK(t, err)
	return adm
}

var topics atomic.Int64

// TopicName returns a name which no other test of the process uses, with the
// test's name in it.
func TopicName(t testing.TB) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '.':
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.180s-%d", name, topics.Add(1))
}

// CreateTopic creates a topic for the test alone and returns its name. Settings of
// the topic are "key=value".
func (c *Cluster) CreateTopic(t testing.TB, partitions int32, replicas int16, settings ...string) string {
	t.Helper()
	topic := TopicName(t)
	configs := make(map[string]*string)
	for _, s := range settings {
		k, v, _ := strings.Cut(s, "=")
		configs[k] = &v
	}
	c.withAdmin(t, "create topic "+topic, func(ctx context.Context, adm *kadm.Client) error {
		// A node that was frozen is fenced, and takes a moment to be used again.
		err := poll(ctx, 200*time.Millisecond, func() error {
			_, err := adm.CreateTopic(ctx, partitions, replicas, configs, topic)
			if err != nil && !errors.Is(err, kerr.InvalidReplicationFactor) {
				return permanentError{err}
			}
			return err
		})
		if err != nil {
			return err
		}
		return poll(ctx, 20*time.Millisecond, func() error { // until every partition has a leader
			all, err := adm.ListTopics(ctx, topic)
			if err != nil {
				return err
			}
			withLeader := 0
			for _, p := range all[topic].Partitions {
				if p.Err == nil && p.Leader >= 0 {
					withLeader++
				}
			}
			if withLeader < int(partitions) {
				return fmt.Errorf("%d of %d partitions have a leader", withLeader, partitions)
			}
			return nil
		})
	})
	return topic
}

// EndOffsets returns the end offset of each partition of a topic. For a new topic
// without transactions that is the number of its records.
func (c *Cluster) EndOffsets(t testing.TB, topic string) map[int32]int64 {
	t.Helper()
	ends := make(map[int32]int64)
	c.withAdmin(t, "list the end offsets of "+topic, func(ctx context.Context, adm *kadm.Client) error {
		return poll(ctx, 100*time.Millisecond, func() error {
			offsets, err := adm.ListEndOffsets(ctx, topic)
			if err != nil {
				return err
			}
			if err := offsets.Error(); err != nil {
				return err
			}
			clear(ends)
			offsets.Each(func(o kadm.ListedOffset) { ends[o.Partition] = o.Offset })
			if len(ends) == 0 {
				return kerr.UnknownTopicOrPartition
			}
			return nil
		})
	})
	return ends
}

// EndSum returns the sum of EndOffsets.
func (c *Cluster) EndSum(t testing.TB, topic string) (sum int64) {
	t.Helper()
	for _, end := range c.EndOffsets(t, topic) {
		sum += end
	}
	return sum
}

// LeaderOf returns the node that leads a partition, nil when none does.
func (c *Cluster) LeaderOf(t testing.TB, topic string, partition int32) *Node {
	t.Helper()
	var leader int32 = -1
	c.withAdmin(t, "find the leader of "+topic, func(ctx context.Context, adm *kadm.Client) error {
		all, err := adm.ListTopics(ctx, topic)
		if err == nil {
			err = all[topic].Err
		}
		leader = all[topic].Partitions[partition].Leader
		return err
	})
	if leader < 1 || int(leader) > len(c.nodes) {
		return nil
	}
	return c.Node(int(leader))
}

// MoveLeader makes a node with a replica the partition's leader and waits until it
// is.
func (c *Cluster) MoveLeader(t testing.TB, topic string, partition int32, to *Node) {
	t.Helper()
	c.withAdmin(t, fmt.Sprintf("move the leader of %s-%d to node %d", topic, partition, to.id), func(ctx context.Context, adm *kadm.Client) error {
		all, err := adm.ListTopics(ctx, topic)
		if err != nil {
			return err
		}
		order := []int32{int32(to.id)}
		for _, r := range all[topic].Partitions[partition].Replicas {
			if r != int32(to.id) {
				order = append(order, r)
			}
		}
		var move kadm.AlterPartitionAssignmentsReq
		move.Assign(topic, partition, order)
		if _, err := adm.AlterPartitionAssignments(ctx, move); err != nil {
			return err
		}
		return poll(ctx, 100*time.Millisecond, func() error {
			set := make(kadm.TopicsSet)
			set.Add(topic, partition)
			if _, err := adm.ElectLeaders(ctx, kadm.ElectPreferredReplica, set); err != nil {
				return err
			}
			all, err := adm.ListTopics(ctx, topic)
			if err != nil {
				return err
			}
			if got := all[topic].Partitions[partition].Leader; got != int32(to.id) {
				return fmt.Errorf("the leader is node %d", got)
			}
			return nil
		})
	})
}

// AwaitInSync waits until every partition of the topic has all its replicas in
// sync.
func (c *Cluster) AwaitInSync(t testing.TB, topic string) {
	t.Helper()
	c.withAdmin(t, "wait for the replicas of "+topic, func(ctx context.Context, adm *kadm.Client) error {
		return poll(ctx, 100*time.Millisecond, func() error {
			all, err := adm.ListTopics(ctx, topic)
			if err != nil {
				return err
			}
			for _, p := range all[topic].Partitions {
				if len(p.ISR) < len(p.Replicas) {
					return fmt.Errorf("partition %d has %d of %d replicas in sync", p.Partition, len(p.ISR), len(p.Replicas))
				}
			}
			return nil
		})
	})
}

// Grant allows a user of a secure cluster the operations on a topic, "*" for
// all topics: "read", "write", "create", "describe", ...
func (c *Cluster) Grant(t testing.TB, user, topic string, operations ...string) {
	t.Helper()
	c.withAdmin(t, "grant rights on "+topic+" to "+user, func(ctx context.Context, adm *kadm.Client) error {
		ops := make([]kmsg.ACLOperation, len(operations))
		for i, name := range operations {
			var err error
			if ops[i], err = kmsg.ParseACLOperation(name); err != nil {
				return err
			}
		}
		acl := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral).
			Operations(ops...).Allow("User:" + user).AllowHosts("*")
		results, err := adm.CreateACLs(ctx, acl)
		for _, r := range results {
			if err == nil {
				err = r.Err
			}
		}
		if err != nil {
			return err
		}
		// The node that answers has the ACLs in its log, but may not apply them yet.
		return poll(ctx, 50*time.Millisecond, func() error {
			found, err := adm.DescribeACLs(ctx, acl)
			if err != nil {
				return err
			}
			n := 0
			for _, f := range found {
				n += len(f.Described)
			}
			if n < len(ops) {
				return fmt.Errorf("%d of %d rights are known", n, len(ops))
			}
			return nil
		})
	})
}
