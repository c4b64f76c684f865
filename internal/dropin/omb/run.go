package omb

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"carronade/internal/advice"
	"carronade/internal/dropin"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// run runs a pair, and returns the exit code.
func (s *session) run(ctx context.Context, r *pair, i int) (int, error) {
	if n, bounded := r.clients(); bounded {
		s.warn(fmt.Sprintf("%s: %s producers are %s here, which send to all topics", r.spec.file, units.FormatCount(uint64(r.topics)*uint64(r.producers)), units.Plural(n, "client")))
	}
	if !r.random && len(s.a.workers) > 0 {
		s.warn(fmt.Sprintf("%s: payloadFile: workers open no files for others: random bytes of the same size are sent", r.spec.file))
	}
	fire, done, err := s.runner(ctx, r)
	if err != nil {
		return host.ExitFailed, err
	}
	defer done()
	if err := s.reset(ctx, r); err != nil {
		return host.ExitFailed, err
	}
	if r.spec.rate == 0 {
		if err := s.search(ctx, r); err != nil {
			return host.ExitFailed, err
		}
	}
	d, err := r.draft()
	if err != nil {
		return host.ExitFailed, err
	}
	m := &meter{r: r, log: s.log}
	began := s.now()
	doc, err := fire(ctx, &d.Document, dropin.Observer{
		Opened: func() {
			took := s.now().Sub(began).Milliseconds()
			s.log.info(ofGenerator, "Created %d topics in %d ms", r.topics, took)
			s.log.info(ofGenerator, "Created %d consumers in %d ms", r.topics*r.groups*r.consumers, took)
			s.log.info(ofGenerator, "Created %d producers in %d ms", r.topics*r.producers, took)
			s.log.info(ofGenerator, "All consumers are ready")
			m.begin(m.first())
		},
		Interval: func(iv load.Snapshot) { m.interval(iv) },
		Backlog:  m.backlog,
	})
	if err != nil {
		return host.ExitFailed, err
	}
	result := m.end(doc)
	dropin.WriteProblems(s.p.Err, doc)
	s.remark(r, doc)
	if err := s.write(r, i, result); err != nil {
		return host.ExitFailed, err
	}
	return doc.ExitCode(), nil
}

// remark says how to read latencies if the rate was not reached.
func (s *session) remark(r *pair, d *report.Document) {
	if rate := r.rounded(); rate > 0 && !s.p.Strict && d.Stopped != load.Interrupted && d.Totals.EventsPerS < 0.95*rate {
		fmt.Fprintf(s.p.Err, "note: the rate of %s was not reached: latency is since messages were due, which is late then; --strict has it since they were sent, and producerRate: 0 searches the highest rate\n", units.FormatRate(rate))
	}
}

// search finds the rate of a workload without one.
func (s *session) search(ctx context.Context, r *pair) error {
	if s.p.Strict {
		s.warn("--strict: producerRate: 0 is a search here, too, and then a run at its rate: OMB's changes the rate every 3 s")
	}
	d, err := r.base()
	if err != nil {
		return err
	}
	budget := s.a.budgetOr()
	s.log.info(ofGenerator, "Searching the highest rate that producers and consumers keep up with, in at most %s", units.FlagDuration(budget))
	found, err := s.p.Find(ctx, &d.Document, budget)
	if err != nil {
		return err
	}
	if found.Search == nil || found.Search.Answer == nil || found.Search.Answer.Holds <= 0 {
		why := "it has no answer"
		if found.Search != nil && found.Search.Answer != nil && found.Search.Answer.Why != "" {
			why = found.Search.Answer.Why
		}
		return &advice.Error{Err: fmt.Errorf("%s: no rate was found that holds: %s", r.spec.file, why), Hint: "give a longer --budget, or a rate: producerRate: 10000"}
	}
	r.found = found.Search.Answer.Holds
	upto := ""
	if fails := found.Search.Answer.Fails; fails > 0 {
		upto = fmt.Sprintf(", and does not with %s msg/s", padded(fails, 0))
	}
	s.log.info(ofGenerator, "It keeps up with %s msg/s%s", padded(r.found, 0), upto)
	return nil
}

// reset deletes the topics that earlier runs have left, if the driver asks for it. The tool deletes all topics of
// the cluster.
func (s *session) reset(ctx context.Context, r *pair) error {
	if !r.driver.reset {
		return nil
	}
	at := func() *workload.Document {
		var d dropin.Draft
		d.Set("target", "reset", "kafka://"+r.servers+"/"+topicPrefix)
		r.connection(&d)
		return &d.Document
	}
	found, err := s.p.Topics(ctx, at(), dropin.TopicLoad{Op: "list"})
	if err != nil {
		return err
	}
	var names []string
	for i := range found.Topics {
		if strings.HasPrefix(found.Topics[i].Name, topicPrefix+"-") {
			names = append(names, found.Topics[i].Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	done, err := s.p.Topics(ctx, at(), dropin.TopicLoad{Op: "delete", Names: names, PerRequest: 100, Concurrency: 4})
	switch {
	case err != nil:
		return err
	case done.Failed+done.Unknown+done.Unsent > 0:
		why := "an interruption"
		if len(done.Failures) > 0 {
			why = done.Failures[0].Text
		}
		return fmt.Errorf("reset: %d of %d topics were not deleted: %s", done.Failed+done.Unknown+done.Unsent, len(names), why)
	}
	s.log.info(ofWorker, "Deleted %d topics of earlier runs", len(names))
	return nil
}

// runner is what runs a pair: this machine, or the workers. The caller calls done.
func (s *session) runner(ctx context.Context, r *pair) (run runs, done func(), err error) {
	if len(s.a.workers) == 0 {
		return s.p.Run, func() {}, nil
	}
	var addrs []string
	for _, worker := range s.a.workers {
		addr, err := workerAddr(worker)
		if err != nil {
			return nil, nil, err
		}
		addrs = append(addrs, addr)
	}
	nodes, err := s.p.Nodes(ctx, dropin.NodesOptions{Addrs: addrs, Key: s.a.key, Start: "carronade as omb-worker", Reads: r.groups > 0})
	if err != nil {
		return nil, nil, err
	}
	return nodes.Run, nodes.Close, nil
}

// runs is Program.Run.
type runs = func(context.Context, *workload.Document, dropin.Observer) (*report.Document, error)

// workerAddr is the address of a worker, with or without http:// before it.
func workerAddr(worker string) (string, error) {
	addr := strings.TrimSuffix(strings.TrimPrefix(worker, "http://"), "/")
	name, port, err := net.SplitHostPort(addr)
	if n, failed := strconv.Atoi(port); err != nil || name == "" || failed != nil || n < 1 || n > 65535 {
		return "", &advice.Error{Err: fmt.Errorf("worker %s: not HOST:PORT", worker), Hint: "such as --workers load-1:8080,load-2:8080"}
	}
	return addr, nil
}

// shortNumber is a number without needless zeros.
func shortNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
