package cluster

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// operations returns the number of operations to make; -1: without end.
func (w *TopicLoad) operations() int {
	switch {
	case w.Times < 0:
		return -1
	case w.Op == OpListTopics:
		return max(1, w.Times)
	case w.Next != nil || w.Op == OpReadTopics && w.Times > 0:
		return w.Times
	}
	return max(1, len(w.Names)) // without names, the target's topic
}

// names returns the names for n operations, beginning with operation at.
func (t *work) names(at, n int) []string {
	switch {
	case t.Op == OpListTopics:
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

func (a *attempt) deleteTopics(ctx context.Context, client *kgo.Client, timeout time.Duration) {
	req := kmsg.NewPtrDeleteTopicsRequest()
	req.TimeoutMillis = int32(timeout.Milliseconds())
	req.TopicNames = a.names // up to v5
	for _, n := range a.names {
		t := kmsg.NewDeleteTopicsRequestTopic() // v6 on
		t.Topic = new(n)
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
			a.set(*t.Topic, AnswerError(t.ErrorCode, t.ErrorMessage))
		}
	}
}

// list lists all topics. The result contains the last listing.
func (t *work) list(ctx context.Context, admin *kadm.Client) error {
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
func (t *work) describe(ctx context.Context, admin *kadm.Client, a *attempt) {
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
				i.Settings = TopicSettings(rc.Configs)
			}
		}
	}
	t.mu.Lock()
	for _, i := range infos {
		t.res.Topics = append(t.res.Topics, *i)
	}
	t.mu.Unlock()
}

// deleteRecords deletes the records of topics up to an offset, in every
// partition.
func (t *work) deleteRecords(ctx context.Context, admin *kadm.Client, a *attempt) {
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
func (t *work) read(ctx context.Context, client *kgo.Client, a *attempt) error {
	name := a.names[0]
	began := time.Now()
	r, err := t.reading(ctx, t.cl.Config, client, name)
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
