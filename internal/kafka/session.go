package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"carronade/internal/kafka/cluster"
	"carronade/internal/kafka/franz"
	"carronade/load"
	"carronade/measure"
	"carronade/protocol"
)

// A producerEngine is the producing side of either engine.
type producerEngine interface {
	load.Target
	// LogOf returns the partition that a stream's events go to.
	LogOf(stream int32) int32
	// Stamped reports whether every event contains a stamp.
	Stamped() bool
	// Keyed reports whether events have keys.
	Keyed() bool
	// Metrics returns what was sent to each broker.
	Metrics() []cluster.BrokerMetrics
	// Facts returns facts for the report, in addition to the cluster's.
	Facts() map[string]any
	// Encoding says when the bytes of events are made.
	Encoding() *measure.Encoding
	Warnings() []string
	// Close ends all connections. The lanes are closed already.
	Close() error
}

// A consumerEngine is the consuming side of either engine.
type consumerEngine interface {
	load.Source
	load.Seeker
	// Metrics returns what was asked of each broker.
	Metrics() []cluster.BrokerMetrics
	Facts() map[string]any
	Warnings() []string
	Close() error
}

// A session is a cluster opened for one run.
type session struct {
	cl  *cluster.Cluster
	out producerEngine // nil when only consuming
	in  consumerEngine // nil when only producing, or with groups

	groups []group     // that read what is sent
	by     *itemReader // reads records by their offsets; nil otherwise

	follower *follower // of a pipeline; nil otherwise

	list *listing // of what was acked or read; nil: none is written

	committed *wireSource // nil unless transactions are verified
}

// Check finds what is wrong with a spec by itself.
func (Kind) Check(spec protocol.Spec) error {
	_, err := cluster.ParseConfig(spec)
	return err
}

// Open implements protocol.Kind. It connects to the cluster, finds or creates the
// topic, and asks where its partitions begin and end. An error names the address
// and what to check, and is returned within about ten seconds.
func (Kind) Open(ctx context.Context, spec protocol.Spec) (protocol.Session, error) {
	c, err := cluster.ParseConfig(spec)
	if err != nil {
		return nil, err
	}
	cl, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s := &session{cl: cl}
	err = s.open(ctx)
	if err == nil {
		err = s.openList()
	}
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *session) open(ctx context.Context) (err error) {
	c := s.cl.Config
	stamped := false
	c.Compacted = c.Verify && !c.OnlyReads() && s.cl.Compacts()
	if c.Op == cluster.OpRead {
		list, err := openItems(ctx, s.cl)
		if err != nil {
			return err
		}
		s.by, err = newItemReader(ctx, s.cl, list)
		return err
	}
	if c.Op != cluster.OpConsume {
		out, err := newProducerEngine(ctx, s.cl)
		if err != nil {
			return err
		}
		s.out, stamped = out, out.Stamped()
		if c.Verify {
			if err := c.CheckVerifiable(out.Keyed(), stamped); err != nil {
				return err
			}
		}
	}
	if c.Op == cluster.OpPipeline {
		f, err := newFollower(ctx, s.cl, s.out)
		s.follower = f
		return err
	}
	if c.Op == cluster.OpProduce && !c.Verify {
		return nil
	}
	// No event is sent before the run starts, so the consuming side begins where
	// the logs end now, and misses none.
	if c.Groups > 0 && !s.cl.Absent {
		s.groups, err = openGroups(ctx, s.cl, stamped)
		return err
	}
	in, err := newConsumerEngine(ctx, s.cl, stamped)
	if err != nil {
		return err
	}
	s.in = in
	if c.Verify && c.Txn.On {
		s.committed = committedSource(s.cl, stamped, in.Starts())
	}
	return nil
}

func newProducerEngine(ctx context.Context, cl *cluster.Cluster) (producerEngine, error) {
	if cl.Config.Engine == cluster.EngineClient {
		return franz.NewProducer(ctx, cl)
	}
	p, err := newProducer(ctx, cl.Config, cl.Topics)
	if err != nil {
		return nil, cl.Config.Explain("open the wire engine", err)
	}
	p.repacked = cl.Config.Recompresses(cl.Settings["compression.type"]) || cl.Config.Compacted
	return p, nil
}

// newConsumerEngine opens the consuming side. A producing run is always verified
// through the wire engine, because only that sees the batches.
func newConsumerEngine(ctx context.Context, cl *cluster.Cluster, stamped bool) (consumerEngine, error) {
	if cl.Absent {
		return absentSource{cl.Config}, nil
	}
	if cl.Config.Engine == cluster.EngineClient && cl.Config.Op != cluster.OpProduce {
		return franz.NewSource(ctx, cl, stamped)
	}
	return newWireSource(ctx, cl, stamped)
}

// Facts implements producerEngine.
func (p *producer) Facts() map[string]any {
	f := map[string]any{"events": p.gen.Describe(), "stamped": p.Stamped()}
	if r := p.Ratio(); r > 0 {
		f["compressed_to"] = r
	}
	if n := p.Distinct(); n > 0 {
		f["distinct_events"] = n
	}
	if n := p.renewed.Load(); n > 0 {
		f["logins_renewed"] = n
	}
	return f
}

// Encoding implements producerEngine. It has nothing for the codec's share before anything was sent.
func (p *producer) Encoding() *measure.Encoding {
	e := p.cfg.Encoding(p.Stamped(), p.Distinct())
	var raw, compressed uint64
	for _, s := range p.senders {
		raw += s.encoder.rawBytes.Load()
		compressed += s.encoder.compressedBytes.Load()
	}
	switch {
	case e.Codec == "":
	case p.cfg.Fresh:
		e.Compressed(e.Codec, 1)
	case raw > 0:
		e.Compressed(e.Codec, float64(compressed)/float64(raw))
	}
	return e
}

// Warnings implements producerEngine.
func (p *producer) Warnings() []string {
	all := p.absent.Warnings()
	if p.batchPool.warning != "" {
		all = append(all, p.batchPool.warning)
	}
	return all
}

// Target implements protocol.Session.
func (s *session) Target() load.Target {
	switch {
	case s.by != nil:
		return s.by
	case s.out == nil:
		return nil
	}
	return s.out
}

// Source implements protocol.Session. Producing with verification has one, too: it
// begins where the logs ended when the session was opened.
func (s *session) Source() load.Source {
	if s.in == nil {
		return nil
	}
	return s.in
}

// Facts implements protocol.Session.
func (s *session) Facts() map[string]any {
	f := s.cl.Facts()
	if s.out != nil {
		maps.Copy(f, s.out.Facts())
	}
	if s.in != nil {
		maps.Copy(f, s.in.Facts())
	}
	if len(s.groups) > 0 {
		f["groups"] = groupFacts(s.cl.Config, s.groups)
	}
	if s.by != nil {
		maps.Copy(f, s.by.facts())
	}
	if s.follower != nil {
		maps.Copy(f, s.follower.facts())
	}
	s.list.facts(f)
	return f
}

// Capabilities implements protocol.Session. With acks=0 brokers do not answer.
func (s *session) Capabilities() protocol.SessionCapabilities {
	c := protocol.SessionCapabilities{
		Unanswered: s.cl.Config.Acks == 0 && s.by == nil, Encoding: s.encoding,
		Brokers: s.Brokers, Survey: s.cl.Survey, Leader: s.cl.Leader, Finish: s.list.finish, Notice: s.notice,
	}
	for _, g := range s.groups {
		c.Groups = append(c.Groups, protocol.Group{Name: g.name, Source: g.in})
	}
	if s.follower != nil {
		c.Pipeline = func() (load.Follower, load.StagePlan) { return s.follower, s.cl.Config.Stage }
	}
	if p, ok := s.out.(*franz.Producer); ok && s.cl.Config.Txn.On {
		c.Transactions = transactions{p, s.committed}
	}
	return c
}

func (s *session) encoding() *measure.Encoding {
	if s.out == nil {
		return nil
	}
	return s.out.Encoding()
}

// Brokers counts what each broker got.
func (s *session) Brokers() []measure.Client {
	var rows []cluster.BrokerMetrics
	if s.out != nil {
		rows = s.out.Metrics()
	}
	if s.in != nil && s.out == nil {
		rows = s.in.Metrics()
	}
	var all []measure.Client
	for _, m := range rows {
		c := measure.Client{
			Broker: fmt.Sprintf("%d at %s", m.Broker, m.Addr), Requests: m.Requests, Batches: m.Batches, Events: m.Records,
			Bytes: m.RawBytes, WireBytes: m.Bytes, ThrottleSeconds: m.Throttle.Seconds(), Reconnects: m.Reconnects,
		}
		if m.Batches > 0 {
			c.EventsPerBatch = float64(m.Records) / float64(m.Batches)
		}
		if m.RawBytes > 0 {
			c.CompressionRatio = float64(m.SentBytes) / float64(m.RawBytes)
		}
		all = append(all, c)
	}
	return all
}

// Warnings implements protocol.Session.
func (s *session) Warnings() []string {
	w := append([]string(nil), s.cl.Config.Warnings...)
	w = append(w, s.cl.Warnings...)
	if s.out != nil {
		w = append(w, s.out.Warnings()...)
	}
	if s.in != nil {
		w = append(w, s.in.Warnings()...)
	}
	for _, g := range s.groups {
		w = append(w, g.in.Warnings()...)
	}
	return append(w, s.list.warnings()...)
}

func (s *session) notice() string {
	switch {
	case s.cl.Absent:
		return absentSource{s.cl.Config}.what() + " did not appear"
	case s.cl.CreatedBy == cluster.ByBroker:
		return fmt.Sprintf("the topic %s did not exist, and the broker created it", s.cl.Config.TopicText())
	}
	return ""
}

// Close implements protocol.Session.
func (s *session) Close() error {
	var errs []error
	defer s.list.finish() //nolint:errcheck // Finish has returned it; without a call of it nothing was sent
	if s.out != nil {
		errs = append(errs, s.out.Close())
	}
	if s.in != nil {
		errs = append(errs, s.in.Close())
	}
	for _, g := range s.groups {
		errs = append(errs, g.in.Close())
	}
	s.deleteGroups()
	if s.by != nil {
		errs = append(errs, s.by.Close())
	}
	if s.follower != nil {
		errs = append(errs, s.follower.close())
	}
	errs = append(errs, s.cl.DeleteCreated())
	s.cl.Close()
	return errors.Join(errs...)
}
