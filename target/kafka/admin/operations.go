package admin

import (
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

// operations returns the number of operations to make; -1: without end.
func (w *Work) operations() int {
	switch {
	case w.Times < 0:
		return -1
	case w.Op == List:
		return max(1, w.Times)
	case w.Next != nil || w.Op == Read && w.Times > 0:
		return w.Times
	}
	return max(1, len(w.Names)) // without names, the target's topic
}

// names returns the names for n operations, beginning with operation at.
func (t *Load) names(at, n int) []string {
	switch {
	case t.Op == List:
		return []string{""} // one operation for all topics
	case t.Next != nil:
		names := make([]string, n)
		for i := range names {
			if names[i], t.firstName = t.firstName, ""; names[i] == "" {
				names[i] = t.Next()
			}
		}
		return names
	}
	at %= len(t.Names) // only read starts again, and its requests have one topic each
	return t.Names[at : at+n]
}

// CreateTopics creates topics with one request and returns an error, or nil, for
// each.
func CreateTopics(ctx context.Context, client *kgo.Client, specs []Spec, timeout time.Duration) []error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	a := &attempt{errs: make([]error, len(specs))}
	for _, s := range specs {
		a.names = append(a.names, s.Name)
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
			c.Name, c.Value = kv[0], kmsg.StringPtr(kv[1])
			t.Configs = append(t.Configs, c)
		}
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		a.failAll(err)
		return a.errs
	}
	a.failAll(ErrNoAnswer)
	for _, t := range resp.Topics {
		a.set(t.Topic, withMessage(kerr.ErrorForCode(t.ErrorCode), t.ErrorMessage))
	}
	return a.errs
}

func (a *attempt) deleteTopics(ctx context.Context, client *kgo.Client, timeout time.Duration) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	req.TopicNames = a.names // up to v5
	for _, n := range a.names {
		t := kmsg.NewDeleteTopicsRequestTopic() // v6 on
		t.Topic = kmsg.StringPtr(n)
		req.Topics = append(req.Topics, t)
	}
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		a.failAll(err)
		return
	}
	a.failAll(ErrNoAnswer)
	for _, t := range resp.Topics {
		if t.Topic != nil {
			a.set(*t.Topic, withMessage(kerr.ErrorForCode(t.ErrorCode), t.ErrorMessage))
		}
	}
}

// withMessage adds a broker's message to its error.
func withMessage(err error, message *string) error {
	if err == nil || message == nil || *message == "" {
		return err
	}
	return fmt.Errorf("%w (%s)", err, *message)
}

// list lists all topics. The result contains the last listing.
func (t *Load) list(ctx context.Context, admin *kadm.Client) error {
	list := admin.ListTopics
	if t.Internal {
		list = admin.ListTopicsWithInternal
	}
	found, err := list(ctx)
	if err != nil {
		return err
	}
	infos := make([]Topic, 0, len(found))
	for _, d := range found {
		infos = append(infos, infoOf(&d))
	}
	t.mu.Lock()
	t.res.Topics = infos
	t.mu.Unlock()
	return nil
}

func infoOf(d *kadm.TopicDetail) Topic {
	i := Topic{Name: d.Topic, Partitions: len(d.Partitions), Replicas: d.Partitions.NumReplicas(), Internal: d.IsInternal}
	if d.ID != (kadm.TopicID{}) {
		i.ID = d.ID.String()
	}
	return i
}

// describe requests topics and their settings.
func (t *Load) describe(ctx context.Context, admin *kadm.Client, a *attempt) {
	found, err := admin.ListTopicsWithInternal(ctx, a.names...)
	if err != nil {
		a.failAll(err)
		return
	}
	infos := map[string]*Topic{}
	a.failAll(ErrNoAnswer)
	for name, d := range found {
		a.set(name, d.Err)
		if d.Err != nil {
			continue
		}
		i := infoOf(&d)
		leaders := make([]int32, 0, len(d.Partitions))
		for _, p := range d.Partitions.Sorted() {
			leaders = append(leaders, p.Leader)
		}
		i.Leaders = Layout(leaders)
		infos[name] = &i
	}
	if len(infos) > 0 {
		configs, err := admin.DescribeTopicConfigs(ctx, slices.Sorted(maps.Keys(infos))...)
		if err != nil {
			a.failAll(err)
			return
		}
		for _, rc := range configs {
			if rc.Err != nil {
				a.set(rc.Name, rc.Err)
				delete(infos, rc.Name)
			} else if i := infos[rc.Name]; i != nil {
				i.Settings = Settings(rc.Configs)
			}
		}
	}
	t.mu.Lock()
	for _, i := range infos {
		t.res.Topics = append(t.res.Topics, *i)
	}
	t.mu.Unlock()
}

// Settings returns the settings that were changed for a topic, and those that
// affect its speed.
func Settings(configs []kadm.Config) map[string]string {
	set := map[string]string{}
	for _, kv := range configs {
		own := kv.Source == kmsg.ConfigSourceDynamicTopicConfig
		if !kv.Sensitive && kv.Value != nil && (own || slices.Contains(performanceSettings, kv.Key)) {
			set[kv.Key] = *kv.Value
		}
	}
	return set
}

// deleteRecords deletes the records of topics up to an offset, in every
// partition.
func (t *Load) deleteRecords(ctx context.Context, admin *kadm.Client, a *attempt) {
	found, err := admin.ListTopics(ctx, a.names...)
	if err != nil {
		a.notRequested = true
		a.failAll(err)
		return
	}
	offsets := kadm.Offsets{}
	a.failAll(ErrNoAnswer)
	for name, d := range found {
		a.set(name, d.Err)
		for p := range d.Partitions {
			offsets.Add(kadm.Offset{Topic: name, Partition: p, At: t.Upto})
		}
	}
	if len(offsets) == 0 {
		a.notRequested = true
		return
	}
	deleted, err := admin.DeleteRecords(ctx, offsets)
	if err != nil {
		for name := range offsets {
			a.set(name, err)
		}
		return
	}
	deleted.Each(func(r kadm.DeleteRecordsResponse) {
		// A partition that ends before the offset has nothing to delete.
		if r.Err != nil && !errors.Is(r.Err, kerr.OffsetOutOfRange) {
			a.set(r.Topic, r.Err)
		}
	})
}

// read reads a topic completely.
func (t *Load) read(ctx context.Context, client *kgo.Client, a *attempt) error {
	name := a.names[0]
	began := time.Now()
	r, err := t.cl.Read(ctx, client, name)
	if err != nil {
		return err
	}
	a.events, a.bytes = r.Events, r.Bytes
	t.mu.Lock()
	defer t.mu.Unlock()
	t.res.Events += a.events
	t.res.Bytes += a.bytes
	t.res.BytesWire = t.res.BytesWire || r.Wire
	info := Topic{
		Name: name, Partitions: r.Partitions, Replicas: r.Replicas,
		Events: a.events, Bytes: a.bytes, Elapsed: time.Since(began),
	}
	if i, again := t.found[name]; again {
		t.res.Topics[i] = info
	} else {
		t.found[name] = len(t.res.Topics)
		t.res.Topics = append(t.res.Topics, info)
	}
	return nil
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
