package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/workload"
	"carronade/target"
	"carronade/target/kafka"
	"carronade/units"
)

const topicsLong = `Makes, lists, describes, deletes and reads Kafka topics, as operations that are
counted and timed: one topic by hand, or ten thousand as a load. A topic that is
missing, or there already, is a failure like any other, and makes the exit code 1.

TARGET names the broker and may name the topic; TOPICS are others, with commas
between them.`

const topicsExample = `
  carronade topics create kafka://127.0.0.1:9092/orders --partitions 12
  carronade topics create kafka://127.0.0.1:9092/load --count 10k --per-request 100
  carronade topics read kafka://127.0.0.1:9092 orders,payments`

// mostTopics bounds --count: every name is kept.
const mostTopics = 10_000_000

// topicFlags are what is typed for an operation on topics.
type topicFlags struct {
	typed
	op string

	file        string
	count       string
	concurrency int
	perRequest  int
	rate        string
	json        bool

	partitions int
	replicas   int
	config     []string
	upto       int64
	times      int
	internal   bool
}

// topicsCommand returns nil in a program without Kafka.
func (s *session) topicsCommand() *cobra.Command {
	if s.kafka() == nil {
		return nil
	}
	cmd := group("topics", "make, list, describe, delete and read Kafka topics", topicsLong,
		s.topicCommand(kafka.TopicsCreate, "TARGET [TOPICS]", "make topics"),
		s.topicCommand(kafka.TopicsList, "TARGET", "list all topics"),
		s.topicCommand(kafka.TopicsDescribe, "TARGET [TOPICS]", "partitions, leaders and settings of topics"),
		s.topicCommand(kafka.TopicsDelete, "TARGET [TOPICS]", "delete topics"),
		s.topicCommand(kafka.TopicsDeleteRecords, "TARGET [TOPICS]", "delete the records of topics, up to an offset"),
		s.topicCommand(kafka.TopicsRead, "TARGET [TOPICS]", "read topics whole, each as one operation"),
	)
	cmd.Example = topicsExample
	return cmd
}

// kafka returns the program's Kafka kind, nil when it has none.
func (s *session) kafka() target.Kind {
	for _, k := range s.Kinds {
		if k.Name() == "kafka" {
			return k
		}
	}
	return nil
}

func (s *session) topicCommand(op, usage, short string) *cobra.Command {
	f := &topicFlags{op: op}
	most := 2
	if op == kafka.TopicsList {
		most = 1
	}
	cmd := &cobra.Command{
		Use: op + " " + usage, Short: short,
		Args:              args(1, most, "a target, such as kafka://127.0.0.1:9092/orders"),
		ValidArgsFunction: completeTarget([]target.Kind{s.kafka()}),
		RunE: s.run(func(cmd *cobra.Command, args []string) error {
			w, err := s.topicWork(f, args)
			if err != nil {
				return err
			}
			return s.topics(cmd.Context(), w, f.json)
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "the result as JSON on stdout")
	fs.IntVar(&f.concurrency, "concurrency", 1, "requests in flight at once")
	fs.StringVar(&f.rate, "rate", "", "requests due a `RATE`, such as 50/s; left out: each when the one before is answered")
	if op == kafka.TopicsList {
		fs.IntVar(&f.times, "times", 1, "how often")
		fs.BoolVar(&f.internal, "internal", false, "the brokers' own topics as well")
	} else {
		fs.StringVar(&f.file, "topics-file", "", "more topics, a line each in `FILE`")
		fs.StringVar(&f.count, "count", "", "`N` topics: TOPIC-0, TOPIC-1, ...")
	}
	if op == kafka.TopicsCreate || op == kafka.TopicsDelete {
		fs.IntVar(&f.perRequest, "per-request", 1, "topics in one request")
	}
	switch op {
	case kafka.TopicsCreate:
		fs.IntVar(&f.partitions, "partitions", 0, "of each topic; left out: as the broker likes")
		fs.IntVar(&f.replicas, "replicas", 0, "of each partition; left out: as the broker likes")
		fs.StringArrayVar(&f.config, "config", nil, "a setting of the topics, `K=V` (repeatable)")
	case kafka.TopicsDeleteRecords:
		fs.Int64Var(&f.upto, "upto", -1, "delete what lies before this offset; -1: everything")
	}
	for _, o := range workload.Table(s.kafka()) {
		if o.Kind != "" && o.Means(workload.Consume) && belongs(op, &o) {
			f.bindSetting(fs, &o)
		}
	}
	return cmd
}

// belongs tells whether an option of Kafka means something for an operation:
// what reaches the brokers for all of them, what reads for reading.
func belongs(op string, o *workload.Setting) bool {
	switch o.Group {
	case "security", "connections":
		return o.Name != "clients"
	case "consuming":
		return op == kafka.TopicsRead && !slices.Contains([]string{"group", "from", "until-end"}, o.Name)
	}
	return false
}

// topicWork makes what package kafka does of what was typed.
func (s *session) topicWork(f *topicFlags, args []string) (kafka.TopicWork, error) {
	f.doc.Add("target", "target", args[0])
	f.doc.Add("op", "op", workload.Consume)
	w, err := workload.Resolve([]target.Kind{s.kafka()}, &f.doc, nil)
	if err != nil {
		return kafka.TopicWork{}, err
	}
	for _, text := range w.Warnings {
		s.warn(text)
	}
	spec, err := w.Spec()
	if err != nil {
		return kafka.TopicWork{}, err
	}
	work := kafka.TopicWork{
		Op: f.op, URL: w.URL, Options: spec.Options, Given: spec.Given,
		Upto: f.upto, Concurrency: f.concurrency, PerRequest: f.perRequest, Times: f.times, Internal: f.internal,
		Logf: s.note,
	}
	for name, n := range map[string]int{"concurrency": f.concurrency, "per-request": max(f.perRequest, 1), "times": max(f.times, 1)} {
		if n < 1 || n > 10_000 {
			return work, &words{err: fmt.Errorf("--%s: %d is not between 1 and 10,000", name, n)}
		}
	}
	if f.rate != "" {
		if work.Rate, err = units.ParseRate(f.rate); err != nil || work.Rate <= 0 {
			return work, &words{err: fmt.Errorf("--rate: %q is no rate above 0", f.rate), hint: "write it as 50/s"}
		}
	}
	if f.op == kafka.TopicsCreate {
		text := strings.Join(f.config, ",")
		if work.Spec, err = kafka.ParseTopicSpec(text); err != nil {
			return work, err
		}
		if f.partitions < 0 || f.replicas < 0 || f.replicas > 1<<15-1 || f.partitions > 1_000_000 {
			return work, &words{err: errors.New("--partitions and --replicas are numbers above 0"), hint: "leave them out and the broker decides"}
		}
		work.Spec.Partitions, work.Spec.Replicas = int32(f.partitions), int16(f.replicas)
	}
	work.Names, err = f.names(args, w)
	return work, err
}

// names are the topics of the arguments, the file and the count.
func (f *topicFlags) names(args []string, w *workload.Workload) ([]string, error) {
	var names []string
	if len(args) > 1 {
		for name := range strings.SplitSeq(args[1], ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	if f.file != "" {
		more, err := readLines(f.file)
		if err != nil {
			return nil, &words{err: fmt.Errorf("--topics-file: cannot read %s: %s", f.file, reason(err))}
		}
		names = append(names, more...)
	}
	own := strings.Trim(w.URL.Path, "/")
	if f.count == "" {
		if len(names) == 0 && own == "" && f.op != kafka.TopicsList {
			return nil, &words{err: errors.New("no topic was named"), hint: fmt.Sprintf("put it into the target, %s/TOPIC, or after it", strings.TrimRight(w.Target(), "/"))}
		}
		return names, nil
	}
	n, err := units.ParseCount(f.count)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--count: %w", err)
	case n == 0 || n > mostTopics:
		return nil, &words{err: fmt.Errorf("--count: %s is not between 1 and ten million", f.count)}
	case len(names) > 0 || own == "":
		return nil, &words{err: errors.New("--count needs one topic, in the target, to make names of"), hint: "kafka://127.0.0.1:9092/load --count 100 is load-0 to load-99"}
	}
	return kafka.TopicNames(own+"-", int(n)), nil
}

func readLines(path string) ([]string, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var out []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		if l := strings.TrimSpace(lines.Text()); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out, lines.Err()
}

func (s *session) topics(ctx context.Context, w kafka.TopicWork, asJSON bool) error {
	r, err := kafka.Topics(ctx, w)
	if err != nil {
		if ctx.Err() != nil {
			return context.Canceled
		}
		return err
	}
	d := topicsDocument(r)
	if asJSON {
		err = writeJSON(s.out, d)
	} else {
		d.text(s.out)
	}
	switch {
	case err != nil:
		return err
	case r.Interrupted:
		return exitCode{exitInterrupted, nil}
	case r.Failed > 0:
		return exitCode{exitBroken, nil}
	}
	return nil
}
