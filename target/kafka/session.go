package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"carronade/load"
	"carronade/measure"
	"carronade/target"
)

// A producerEngine is the producing side of either engine.
type producerEngine interface {
	load.Target
	target.Placed
	// keyed reports whether events have keys.
	keyed() bool
	// Metrics returns what was sent to each broker.
	Metrics() []BrokerMetrics
	// facts returns facts for the report, in addition to the cluster's.
	facts() map[string]any
	// encoding says when the bytes of events are made.
	encoding() *measure.Encoding
	warnings() []string
	// Close ends all connections. The lanes are closed already.
	Close() error
}

// A consumerEngine is the consuming side of either engine.
type consumerEngine interface {
	load.Source
	target.Seekable
	facts() map[string]any
	warnings() []string
	close() error
}

// A session is a cluster opened for one run.
type session struct {
	cl  *cluster
	out producerEngine // nil when only consuming
	in  consumerEngine // nil when only producing
	by  *itemReader    // reads records by their offsets; nil otherwise

	follower *follower // of a pipeline; nil otherwise

	list *listing // of what was acked or read; nil: none is written

	committed *wireSource // nil unless transactions are verified
}

// Check implements target.Checker.
func (Kind) Check(spec target.Spec) error {
	_, err := parseConfig(spec)
	return err
}

// Open implements target.Kind. It connects to the cluster, finds or creates the
// topic, and asks where its partitions begin and end. An error names the address
// and what to check, and is returned within about ten seconds.
func (Kind) Open(ctx context.Context, spec target.Spec) (target.Session, error) {
	c, err := parseConfig(spec)
	if err != nil {
		return nil, err
	}
	cl, err := c.connect(ctx)
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

func (s *session) open(ctx context.Context) error {
	c := s.cl.cfg
	stamped := false
	c.compacted = c.verify && !c.onlyReads() && s.cl.compacts()
	if c.op == opRead {
		list, err := openItems(ctx, s.cl)
		if err != nil {
			return err
		}
		s.by, err = newItemReader(ctx, s.cl, list)
		return err
	}
	if c.op != opConsume {
		out, err := newProducerEngine(ctx, s.cl)
		if err != nil {
			return err
		}
		s.out, stamped = out, out.Stamped()
		if c.verify {
			if err := c.checkVerifiable(out.keyed(), stamped); err != nil {
				return err
			}
		}
	}
	if c.op == opPipeline {
		f, err := newFollower(ctx, s.cl, s.out)
		s.follower = f
		return err
	}
	if c.op == opProduce && !c.verify {
		return nil
	}
	// No event is sent before the run starts, so the consuming side begins where
	// the logs end now, and misses none.
	in, err := newConsumerEngine(ctx, s.cl, stamped)
	if err != nil {
		return err
	}
	s.in = in
	if c.verify && c.txn.on {
		s.committed = committedSource(s.cl, stamped, in.Starts())
	}
	return nil
}

func newProducerEngine(ctx context.Context, cl *cluster) (producerEngine, error) {
	if cl.cfg.engine == engineClient {
		return newClientProducer(ctx, cl)
	}
	p, err := newProducer(ctx, cl.cfg)
	if err != nil {
		return nil, cl.cfg.explain("open the wire engine", err)
	}
	p.repacked = cl.cfg.recompresses(cl.settings["compression.type"]) || cl.cfg.compacted
	return wireProducer{p}, nil
}

// newConsumerEngine opens the consuming side. A producing run is always verified
// through the wire engine, because only that sees the batches.
func newConsumerEngine(ctx context.Context, cl *cluster, stamped bool) (consumerEngine, error) {
	if cl.absent {
		return absentSource{cl.cfg}, nil
	}
	if cl.cfg.engine == engineClient && cl.cfg.op != opProduce {
		return newClientSource(ctx, cl, stamped)
	}
	return newWireSource(ctx, cl, stamped)
}

// wireProducer adds the wire engine's facts and warnings for the report.
type wireProducer struct{ *producer }

func (w wireProducer) facts() map[string]any {
	f := map[string]any{"events": w.gen.Describe(), "stamped": w.Stamped()}
	if r := w.Ratio(); r > 0 {
		f["compressed_to"] = r
	}
	if n := w.Distinct(); n > 0 {
		f["distinct_events"] = n
	}
	if n := w.renewed.Load(); n > 0 {
		f["logins_renewed"] = n
	}
	return f
}

// encoding returns nil for the codec's share before anything was sent.
func (w wireProducer) encoding() *measure.Encoding {
	e := w.cfg.encoding(w.Stamped(), w.Distinct())
	var raw, compressed uint64
	for _, s := range w.senders {
		raw += s.encoder.rawBytes.Load()
		compressed += s.encoder.compressedBytes.Load()
	}
	switch {
	case e.Codec == "":
	case w.cfg.fresh:
		e.Compressed(e.Codec, 1)
	case raw > 0:
		e.Compressed(e.Codec, float64(compressed)/float64(raw))
	}
	return e
}

func (w wireProducer) warnings() []string {
	all := w.absent.Warnings()
	if w.batchPool.warning != "" {
		all = append(all, w.batchPool.warning)
	}
	return all
}

// Target implements target.Session.
func (s *session) Target() load.Target {
	switch {
	case s.by != nil:
		return s.by
	case s.out == nil:
		return nil
	}
	return s.out
}

// Source implements target.Session. Producing with verification has one, too: it
// begins where the logs ended when the session was opened.
func (s *session) Source() load.Source {
	if s.in == nil {
		return nil
	}
	return s.in
}

// Facts implements target.Session.
func (s *session) Facts() map[string]any {
	f := s.cl.facts()
	if s.out != nil {
		maps.Copy(f, s.out.facts())
	}
	if s.in != nil {
		maps.Copy(f, s.in.facts())
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

// Encoding implements target.Encoded.
func (s *session) Encoding() *measure.Encoding {
	if s.out == nil {
		return nil
	}
	return s.out.encoding()
}

// Survey implements target.Surveyor.
func (s *session) Survey(ctx context.Context) error { return s.cl.survey(ctx) }

// Brokers implements target.Metered.
func (s *session) Brokers() []measure.Client {
	var rows []BrokerMetrics
	if s.out != nil {
		rows = s.out.Metrics()
	}
	if r, ok := s.in.(interface{ Metrics() []BrokerMetrics }); ok && s.out == nil {
		rows = r.Metrics()
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

// Unanswered implements target.Unanswered: with acks=0 brokers do not answer.
func (s *session) Unanswered() bool { return s.cl.cfg.acks == 0 && s.by == nil }

// Warnings implements target.Session.
func (s *session) Warnings() []string {
	w := append([]string(nil), s.cl.cfg.warnings...)
	w = append(w, s.cl.warnings...)
	if s.out != nil {
		w = append(w, s.out.warnings()...)
	}
	if s.in != nil {
		w = append(w, s.in.warnings()...)
	}
	return append(w, s.list.warnings()...)
}

// Notice implements target.Noticer.
func (s *session) Notice() string {
	switch {
	case s.cl.absent:
		return absentSource{s.cl.cfg}.what() + " did not appear"
	case s.cl.createdBy == byBroker:
		return fmt.Sprintf("the topic %s did not exist, and the broker created it", s.cl.cfg.topic)
	}
	return ""
}

// Close implements target.Session.
func (s *session) Close() error {
	var errs []error
	defer s.list.finish() //nolint:errcheck // Finish has returned it; without a call of it nothing was sent
	if s.out != nil {
		errs = append(errs, s.out.Close())
	}
	if s.in != nil {
		errs = append(errs, s.in.close())
	}
	if s.by != nil {
		errs = append(errs, s.by.Close())
	}
	if s.follower != nil {
		errs = append(errs, s.follower.close())
	}
	s.cl.close()
	return errors.Join(errs...)
}

// Leader implements target.Leading.
func (s *session) Leader(ctx context.Context, partition int) (string, error) {
	return s.cl.leader(ctx, partition)
}
