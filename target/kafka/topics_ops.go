package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/load"
)

// errNoAnswerFor is the error of a topic that is missing in an answer.
var errNoAnswerFor = errors.New("the broker did not answer for the topic")

// operations returns the number of operations to make; -1: without end.
func (w *TopicWork) operations() int {
	switch {
	case w.Times < 0:
		return -1
	case w.Op == TopicsList:
		return max(1, w.Times)
	case w.Next != nil || w.Op == TopicsRead && w.Times > 0:
		return w.Times
	}
	return max(1, len(w.Names)) // without names, the target's topic
}

// names returns the names for n operations, beginning with operation at.
func (t *topicLoad) names(at, n int) []string {
	switch {
	case t.Op == TopicsList:
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

// createTopics creates topics with one request and returns an error, or nil, for
// each.
func createTopics(ctx context.Context, client *kgo.Client, specs []TopicSpec, timeout time.Duration) []error {
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
	a.failAll(errNoAnswerFor)
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
	a.failAll(errNoAnswerFor)
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
func (t *topicLoad) list(ctx context.Context, admin *kadm.Client) error {
	list := admin.ListTopics
	if t.Internal {
		list = admin.ListTopicsWithInternal
	}
	found, err := list(ctx)
	if err != nil {
		return err
	}
	infos := make([]TopicInfo, 0, len(found))
	for _, d := range found {
		infos = append(infos, infoOf(&d))
	}
	t.mu.Lock()
	t.res.Topics = infos
	t.mu.Unlock()
	return nil
}

func infoOf(d *kadm.TopicDetail) TopicInfo {
	i := TopicInfo{Name: d.Topic, Partitions: len(d.Partitions), Replicas: d.Partitions.NumReplicas(), Internal: d.IsInternal}
	if d.ID != (kadm.TopicID{}) {
		i.ID = d.ID.String()
	}
	return i
}

// describe requests topics and their settings.
func (t *topicLoad) describe(ctx context.Context, admin *kadm.Client, a *attempt) {
	found, err := admin.ListTopicsWithInternal(ctx, a.names...)
	if err != nil {
		a.failAll(err)
		return
	}
	infos := map[string]*TopicInfo{}
	a.failAll(errNoAnswerFor)
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
		i.Leaders = layout(leaders)
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
				i.Settings = settingsOf(rc.Configs)
			}
		}
	}
	t.mu.Lock()
	for _, i := range infos {
		t.res.Topics = append(t.res.Topics, *i)
	}
	t.mu.Unlock()
}

// settingsOf returns the settings that were changed for a topic, and those that
// affect its speed.
func settingsOf(configs []kadm.Config) map[string]string {
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
func (t *topicLoad) deleteRecords(ctx context.Context, admin *kadm.Client, a *attempt) {
	found, err := admin.ListTopics(ctx, a.names...)
	if err != nil {
		a.notRequested = true
		a.failAll(err)
		return
	}
	offsets := kadm.Offsets{}
	a.failAll(errNoAnswerFor)
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

// read reads a topic completely, to the ends that it has when reading begins. It
// does not create a missing topic.
func (t *topicLoad) read(ctx context.Context, client *kgo.Client, a *attempt) error {
	name := a.names[0]
	began := time.Now()
	c := *t.cl.cfg
	c.topic, c.untilEnd, c.from, c.op, c.group = name, true, position{kind: "earliest"}, opConsume, ""
	cl := &cluster{cfg: &c, control: client, admin: kadm.NewClient(client)}
	meta, err := cl.metadata(ctx, name, false)
	if err != nil {
		return err
	}
	if err := kerr.ErrorForCode(meta.Topics[0].ErrorCode); err != nil {
		return err
	}
	cl.applyMetadata(meta)
	src, err := newWireSource(ctx, cl, false)
	if err != nil {
		return err
	}
	var events, bytes, wire atomic.Int64
	var packed atomic.Bool
	err = src.Receive(ctx, func() time.Duration { return time.Since(began) }, func(_ int, as []load.Arrival) {
		for i := range as {
			a := &as[i]
			events.Add(int64(a.Events))
			wire.Add(a.Wire)
			if a.Bytes < 0 {
				packed.Store(true)
			} else {
				bytes.Add(a.Bytes)
			}
		}
	})
	if err != nil {
		return err
	}
	n := bytes.Load()
	if packed.Load() {
		n = wire.Load()
	}
	a.events, a.bytes = uint64(events.Load()), uint64(n)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.res.Events += a.events
	t.res.Bytes += a.bytes
	t.res.BytesWire = t.res.BytesWire || packed.Load()
	info := TopicInfo{
		Name: name, Partitions: cl.partitions(), Replicas: slices.Max(append(cl.replicas, 0)),
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
