package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"carronade/internal/conn"
	"carronade/units"
)

// findTopic waits until the topics exist and their partitions have leaders. A broker may
// create one when something is to be produced. A topic that is only read stays missing:
// an empty one would hide a mistyped name.
func (cl *Cluster) findTopic(ctx context.Context) error {
	c := cl.Config
	began := time.Now()
	var missed, seen time.Time // when a topic was first missing; when all were first there
	for {
		meta, err := cl.Metadata(ctx, !missed.IsZero() && !c.OnlyReads(), c.Names...)
		if err != nil {
			return c.Explain("find the topic "+c.TopicText(), err)
		}
		name, err := topicError(meta)
		doing := "find the topic " + name
		switch {
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero() && c.Create != nil:
			missed, cl.CreatedBy, cl.missing = time.Now(), "carronade", missingTopics(meta)
			if err := cl.createTopics(ctx, cl.missing); err != nil {
				return err
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && missed.IsZero():
			missed = time.Now()
			if !c.OnlyReads() {
				cl.CreatedBy, cl.missing = ByBroker, missingTopics(meta)
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && c.WaitTopic > 0:
			if !c.pauseForTopic(ctx, began) && ctx.Err() == nil {
				cl.Absent, cl.CreatedBy = true, ""
				return nil
			}
			continue
		case errors.Is(err, kerr.UnknownTopicOrPartition) && time.Since(missed) > creationWait+time.Duration(len(c.Names)-1)*timePerTopic:
			return c.MissingTopic(name, err)
		case errors.Is(err, kerr.UnknownTopicOrPartition), errors.Is(err, kerr.LeaderNotAvailable):
		case errors.Is(err, kerr.TopicAuthorizationFailed):
			return c.forbidden(doing, name, err, c.SeeRights()...)
		case err != nil && kerr.IsRetriable(err):
		case err != nil:
			return c.Explain(doing, err)
		default:
			if seen.IsZero() {
				seen = time.Now()
			}
			leaderless := cl.ApplyMetadata(meta)
			if err := cl.checkRights(meta); err != nil {
				return err
			}
			if len(leaderless) == 0 || time.Since(seen) > leaderWait {
				return cl.found(leaderless)
			}
		}
		if ended := Pause(ctx, MetadataPause); ended != nil {
			return c.Explain(doing, fmt.Errorf("not found after %s: %w", time.Since(began).Round(time.Millisecond), cmp.Or(err, ended)))
		}
	}
}

// found warns of what is unusual in topics that exist.
func (cl *Cluster) found(leaderless []int32) error {
	c := cl.Config
	for i := range cl.Topics {
		if cl.Topics[i].Partitions == 0 {
			return c.Explain("find the topic "+cl.Topics[i].Name, errors.New("it has no partitions"))
		}
	}
	if n := len(leaderless); n == cl.Partitions() {
		return c.Explain("find the topic "+c.TopicText(), fmt.Errorf("none of its %d partitions has a leader", n))
	} else if n > 0 {
		first := Places(cl.Topics)[leaderless[0]]
		such := fmt.Sprintf("partition %d", first.Partition)
		if len(cl.Topics) > 1 {
			such += " of " + cl.Topics[first.Topic].Name
		}
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("%d of %d partitions of %s have no leader, such as %s", n, cl.Partitions(), c.TopicText(), such))
	}
	if text := cl.otherPartitions(); text != "" {
		cl.Warnings = append(cl.Warnings, text)
	}
	if cl.CreatedBy == ByBroker {
		cl.Warnings = append(cl.Warnings, fmt.Sprintf("the broker created the topic %s with %s: check the name, or use --create-topic to choose them",
			c.TopicText(), units.Plural(cl.Partitions(), "partition")))
	}
	return nil
}

// otherPartitions is a warning of topics that existed, with another number of partitions than the run would have
// created; empty: there are none.
func (cl *Cluster) otherPartitions() string {
	c := cl.Config
	if c.Create == nil || c.Create.Partitions < 1 {
		return ""
	}
	created := make(map[string]bool, len(cl.missing))
	for _, name := range cl.missing {
		created[name] = true
	}
	var first *TopicLogs
	n := 0
	for i := range cl.Topics {
		if t := &cl.Topics[i]; !created[t.Name] && t.Partitions != int(c.Create.Partitions) {
			if n++; first == nil {
				first = t
			}
		}
	}
	if n == 0 {
		return ""
	}
	text := fmt.Sprintf("the topic %s existed with %s, not %d", first.Name, units.Plural(first.Partitions, "partition"), c.Create.Partitions)
	if n > 1 {
		text = fmt.Sprintf("%d topics existed with another number of partitions: %s", n, text)
	}
	return text
}

// topicError returns the error of a topic that matters most, with the topic: first one that does not pass, then that
// of a topic that does not exist; without an error, the first topic.
func topicError(meta *kmsg.MetadataResponse) (name string, err error) {
	rank := func(err error) int {
		switch {
		case err == nil:
			return 0
		case errors.Is(err, kerr.UnknownTopicOrPartition):
			return 2
		case kerr.IsRetriable(err):
			return 1
		}
		return 3
	}
	for i := range meta.Topics {
		t := &meta.Topics[i]
		if e := kerr.ErrorForCode(t.ErrorCode); i == 0 || rank(e) > rank(err) {
			name, err = *t.Topic, e
		}
	}
	return name, err
}

// missingTopics are those that do not exist.
func missingTopics(meta *kmsg.MetadataResponse) (names []string) {
	for i := range meta.Topics {
		if meta.Topics[i].ErrorCode == kerr.UnknownTopicOrPartition.Code {
			names = append(names, *meta.Topics[i].Topic)
		}
	}
	return names
}

// Metadata asks for the brokers and for topics, which the answer has in the order of names.
func (cl *Cluster) Metadata(ctx context.Context, create bool, names ...string) (*kmsg.MetadataResponse, error) {
	req := kmsg.NewPtrMetadataRequest()
	for _, name := range names {
		t := kmsg.NewMetadataRequestTopic()
		t.Topic = &name
		req.Topics = append(req.Topics, t)
	}
	req.AllowAutoTopicCreation = create
	req.IncludeTopicAuthorizedOperations = true
	meta, err := req.RequestWith(ctx, cl.Control)
	if err != nil {
		return nil, fmt.Errorf("ask for metadata: %w", err)
	}
	topics := make([]kmsg.MetadataResponseTopic, len(names))
	for i, t := range InOrder(meta, names) {
		if t == nil {
			return nil, fmt.Errorf("ask for metadata: the answer lacks the topic %s", names[i])
		}
		topics[i] = *t
	}
	meta.Topics = topics
	return meta, nil
}

// InOrder returns the topics of an answer in the order of names; nil: the answer lacks it.
func InOrder(meta *kmsg.MetadataResponse, names []string) []*kmsg.MetadataResponseTopic {
	order := make(map[string]int, len(names))
	for i, name := range names {
		order[name] = i
	}
	found := make([]*kmsg.MetadataResponseTopic, len(names))
	for i := range meta.Topics {
		if t := &meta.Topics[i]; t.Topic != nil {
			if at, ok := order[*t.Topic]; ok {
				found[at] = t
			}
		}
	}
	return found
}

// ApplyMetadata takes over the brokers, and the leaders and replicas of all topics, from metadata. It returns
// the logs without a leader.
func (cl *Cluster) ApplyMetadata(meta *kmsg.MetadataResponse) (leaderless []int32) {
	if meta.ClusterID != nil {
		cl.ID = *meta.ClusterID
	}
	cl.controller = meta.ControllerID
	cl.Brokers = cl.Brokers[:0]
	for _, b := range meta.Brokers {
		n := Broker{ID: b.NodeID, Addr: JoinAddr(b.Host, b.Port)}
		if b.Rack != nil {
			n.rack = *b.Rack
		}
		cl.Brokers = append(cl.Brokers, n)
	}
	slices.SortFunc(cl.Brokers, func(a, b Broker) int { return cmp.Compare(a.ID, b.ID) })
	cl.Topics, cl.Leaders, cl.Replicas = nil, nil, nil
	for i := range meta.Topics {
		t := &meta.Topics[i]
		base := len(cl.Leaders)
		cl.Topics = append(cl.Topics, TopicLogs{Name: *t.Topic, ID: t.TopicID, Base: base, Partitions: len(t.Partitions)})
		cl.Leaders = append(cl.Leaders, slices.Repeat([]int32{-1}, len(t.Partitions))...)
		cl.Replicas = append(cl.Replicas, make([]int, len(t.Partitions))...)
		for _, p := range t.Partitions {
			// Partitions are numbered from 0 without a gap; another number makes no sense.
			if p.Partition < 0 || int(p.Partition) >= len(t.Partitions) {
				continue
			}
			log := base + int(p.Partition)
			cl.Leaders[log] = p.Leader
			cl.Replicas[log] = len(p.Replicas)
		}
	}
	for log, leader := range cl.Leaders {
		if leader < 0 {
			leaderless = append(leaderless, int32(log)) //nolint:gosec // few logs
		}
	}
	cl.byName = make(map[string]*TopicLogs, len(cl.Topics))
	cl.byID = make(map[[16]byte]*TopicLogs, len(cl.Topics))
	for i := range cl.Topics {
		cl.byName[cl.Topics[i].Name], cl.byID[cl.Topics[i].ID] = &cl.Topics[i], &cl.Topics[i]
	}
	return leaderless
}

// checkRights reports a missing permission early, where the broker lists the
// permissions (from Metadata v8 on; KIP-430).
func (cl *Cluster) checkRights(meta *kmsg.MetadataResponse) error {
	c := cl.Config
	for i := range meta.Topics {
		name := *meta.Topics[i].Topic
		switch right := c.MissingRight(meta.Topics[i].AuthorizedOperations); right {
		case aclWrite:
			return c.forbidden("produce to the topic "+name, name, kerr.TopicAuthorizationFailed, right)
		case aclRead:
			return c.forbidden("consume from the topic "+name, name, kerr.TopicAuthorizationFailed, right)
		}
	}
	return nil
}

const (
	// createAtOnce bounds the topics that a request creates, and creating is how many requests are made at a time.
	createAtOnce = 500
	creating     = 4
	// mostRecords bounds the records that a request makes in the controller's log, one for each topic, partition and
	// setting: Kafka refuses more than 10,000.
	mostRecords = 8000
	// usualPartitions is what a topic has with the broker's defaults, for this bound.
	usualPartitions = 12
)

// createAtOnce is how many such topics a request creates.
func (t *TopicSpec) createAtOnce() int {
	partitions := int(t.Partitions)
	if partitions < 1 {
		partitions = usualPartitions
	}
	return min(createAtOnce, max(1, mostRecords/(1+partitions+len(t.Config))))
}

// createTopics creates topics, as Config.Create says. A topic that exists already is none of its errors.
func (cl *Cluster) createTopics(ctx context.Context, names []string) error {
	c := cl.Config
	chunks := slices.Collect(slices.Chunk(names, c.Create.createAtOnce()))
	return conn.Many(ctx, len(chunks), creating, func(ctx context.Context, i int) error {
		specs := make([]TopicSpec, len(chunks[i]))
		for k, name := range chunks[i] {
			specs[k] = *c.Create
			specs[k].Name = name
		}
		for k, err := range CreateTopics(ctx, cl.Control, specs, c.RequestTimeout) {
			if err = c.explainCreate(specs[k].Name, err); err != nil {
				return err
			}
		}
		return nil
	})
}

// explainCreate explains why a topic was not created; nil: it was, or it existed already.
func (c *Config) explainCreate(name string, err error) error {
	doing := "create the topic " + name
	switch {
	case err == nil || errors.Is(err, kerr.TopicAlreadyExists):
		return nil
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		return c.forbidden(doing, name, err, aclCreate)
	}
	return c.Explain(doing, err)
}

// ReadSettings reads the first topic's settings for the report. It ignores errors: the user
// may lack the permission.
func (cl *Cluster) ReadSettings(ctx context.Context) {
	rs, err := cl.Admin.DescribeTopicConfigs(ctx, cl.Config.Topic)
	if err != nil || len(rs) != 1 || rs[0].Err != nil {
		return
	}
	cl.Settings = TopicSettings(rs[0].Configs)
}
