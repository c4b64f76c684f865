package topics

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/kafka"
	"carronade/internal/kafka/cluster"
	"carronade/internal/place"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

const topicsLong = `Creates, lists, describes, deletes and reads Kafka topics. The operations are
counted and timed, so ten thousand of them are a load test. A topic that is
missing, or exists already, is a failure, and the exit code is then 1.

Each operation except describe is kept as a report, like a run: carronade
report, collate and compare accept it, and carronade report replay makes the
same operations again.
--json prints the result of the operations, with the topics.

TARGET names the broker and may name the topic; TOPICS are further topics,
separated by commas.`

const topicsExample = `
  carronade topics create kafka://127.0.0.1:9092/orders --partitions 12
  carronade topics create kafka://127.0.0.1:9092/load --count 10k \
    --per-request 100
  carronade topics read kafka://127.0.0.1:9092 orders,payments`

// mostTopics limits --count, since every name is kept in memory.
const mostTopics = 10_000_000

// topicFlags are the flags of an operation on topics.
type topicFlags struct {
	cmdutil.Settings
	op string

	file        string
	fileHash    string // of what was read of it
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

// A KeepTopics makes a load of operations on topics, and stores its report as the settings say. It
// calls show with the report and with where it is, as lines for the end of the result, and
// returns its error. An error of the load is returned unchanged.
type KeepTopics func(ctx context.Context, t *cmdutil.Settings, job run.TopicsJob, show func(d *report.Document, more []report.Condition) error) error

// Command returns the command for the program's Kafka kind. room is what it may take of the machine now.
func Command(c cmdutil.Console, k protocol.Kind, room func() *protocol.Room, keep KeepTopics) *cobra.Command {
	t := &topics{Console: c, kind: k, room: room, keep: keep}
	cmd := cmdutil.Group("topics", "create, list, describe, delete and read Kafka topics", topicsLong,
		t.command(cluster.OpCreateTopics, "TARGET [TOPICS]", "create topics"),
		t.command(cluster.OpListTopics, "TARGET", "list all topics"),
		t.command(cluster.OpDescribeTopics, "TARGET [TOPICS]", "partitions, leaders and settings of topics"),
		t.command(cluster.OpDeleteTopics, "TARGET [TOPICS]", "delete topics"),
		t.command(cluster.OpDeleteRecords, "TARGET [TOPICS]", "delete the records of topics, up to an offset"),
		t.command(cluster.OpReadTopics, "TARGET [TOPICS]", "read whole topics, each as one operation"),
	)
	cmd.Example = topicsExample
	return cmd
}

// topics has what the commands need.
type topics struct {
	cmdutil.Console
	kind protocol.Kind
	room func() *protocol.Room
	keep KeepTopics
}

func (t *topics) command(op, usage, short string) *cobra.Command {
	f := &topicFlags{op: op}
	most := 2
	if op == cluster.OpListTopics {
		most = 1
	}
	cmd := &cobra.Command{
		Use: op + " " + usage, Short: short,
		Args:              cmdutil.Args(1, most, "a target, such as kafka://127.0.0.1:9092/orders"),
		ValidArgsFunction: cmdutil.CompleteTarget([]protocol.Kind{t.kind}),
		RunE: cmdutil.Run(func(cmd *cobra.Command, args []string) error {
			var w cluster.TopicLoad
			on, err := cmdutil.Await(cmd.Context(), func() (on *workload.Workload, err error) {
				w, on, err = t.work(f, args)
				return on, err
			})
			if err != nil {
				return err
			}
			if op == cluster.OpDescribeTopics {
				r, err := kafka.Topics(cmd.Context(), w)
				return t.done(cmd.Context(), r, f.json, nil, err)
			}
			return t.run(cmd.Context(), f, args, w, on)
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.json, "json", false, "the result as JSON on stdout")
	fs.IntVarP(&f.concurrency, "concurrency", "c", 1, "requests in flight at once")
	fs.StringVar(&f.rate, "rate", "", "requests at this `RATE`, such as 50/s (default: each when the one before is answered)")
	if op == cluster.OpListTopics {
		fs.IntVar(&f.times, "times", 1, "how often")
		fs.BoolVar(&f.internal, "internal", false, "include internal topics")
	} else {
		fs.StringVar(&f.file, "topics-file", "", "more topics, one per line in `FILE`")
		fs.StringVar(&f.count, "count", "", "`N` topics: TOPIC-0, TOPIC-1, ...")
	}
	if op == cluster.OpCreateTopics || op == cluster.OpDeleteTopics {
		fs.IntVar(&f.perRequest, "per-request", 1, "topics in one request")
	}
	switch op {
	case cluster.OpCreateTopics:
		fs.IntVar(&f.partitions, "partitions", 0, "of each topic (default: the broker's)")
		fs.IntVar(&f.replicas, "replicas", 0, "of each partition (default: the broker's)")
		fs.StringArrayVar(&f.config, "config", nil, "a setting of the topics, `K=V` (repeatable)")
	case cluster.OpDeleteRecords:
		fs.Int64Var(&f.upto, "upto", -1, "delete records before this offset; -1: all")
	}
	for _, o := range workload.Table(t.kind) {
		if o.Kind != "" && o.AppliesTo(workload.Consume) && belongsToTopics(op, &o) {
			f.BindSetting(fs, &o)
		}
	}
	if op != cluster.OpDescribeTopics {
		for _, name := range []string{"label", "note", "store", "no-store"} {
			f.BindOne(fs, name)
		}
	}
	return cmd
}

// belongsToTopics reports whether a Kafka option applies to an operation: connection options to all,
// consumer options to reading.
func belongsToTopics(op string, o *workload.Setting) bool {
	switch o.Group {
	case "security", "connections":
		return o.Name != "clients"
	case "consuming":
		return op == cluster.OpReadTopics && !slices.Contains([]string{"group", "from", "until-end"}, o.Name)
	}
	return false
}

// work converts flags and arguments to work for package kafka, and returns the settings of the
// connection, too.
func (t *topics) work(f *topicFlags, args []string) (cluster.TopicLoad, *workload.Workload, error) {
	f.Doc.Add("target", "target", args[0])
	f.Doc.Add("op", "op", workload.Consume)
	w, err := workload.Resolve([]protocol.Kind{t.kind}, &f.Doc, nil)
	if err != nil {
		return cluster.TopicLoad{}, nil, err
	}
	for _, text := range w.Warnings {
		t.Warn(text)
	}
	spec, err := w.Spec()
	if err != nil {
		return cluster.TopicLoad{}, nil, err
	}
	work := cluster.TopicLoad{
		Op: f.op, URL: w.URL, Options: spec.Options, Given: spec.Given,
		Upto: f.upto, Concurrency: f.concurrency, PerRequest: f.perRequest, Times: f.times, Internal: f.internal,
		Logf: t.Note,
	}
	for name, n := range map[string]int{"concurrency": f.concurrency, "per-request": max(f.perRequest, 1), "times": max(f.times, 1)} {
		if n < 1 || n > 10_000 {
			return work, nil, &protocol.Error{Err: fmt.Errorf("--%s: %d is not between 1 and 10,000", name, n)}
		}
	}
	if f.rate != "" {
		if work.Rate, err = units.ParseRate(f.rate); err != nil {
			return work, nil, fmt.Errorf("--rate: %w", err)
		} else if work.Rate == 0 {
			return work, nil, &protocol.Error{Err: errors.New("--rate: must be above 0"), Hint: "leave --rate out to send as fast as the concurrency allows"}
		}
	}
	if f.op == cluster.OpCreateTopics {
		text := strings.Join(f.config, ",")
		if work.Spec, err = cluster.ParseTopicSpec(text); err != nil {
			return work, nil, err
		}
		if f.partitions < 0 || f.replicas < 0 || f.replicas > 1<<15-1 || f.partitions > 1_000_000 {
			return work, nil, &protocol.Error{Err: errors.New("--partitions and --replicas are numbers above 0"), Hint: "leave them out to use the broker's defaults"}
		}
		work.Spec.Partitions, work.Spec.Replicas = int32(f.partitions), int16(f.replicas)
	}
	work.Names, err = f.names(args, w, t.room())
	return work, w, err
}

// names returns the topics of the arguments, the file and --count, if they fit into the room.
func (f *topicFlags) names(args []string, w *workload.Workload, room *protocol.Room) ([]string, error) {
	var names []string
	if len(args) > 1 {
		for name := range strings.SplitSeq(args[1], ",") {
			if name = strings.TrimSpace(name); name != "" {
				names = append(names, name)
			}
		}
	}
	if f.file != "" {
		data, err := place.ReadFile(f.file) // once: it may be a pipe
		if err != nil {
			return nil, &protocol.Error{Err: fmt.Errorf("--topics-file: cannot read %s: %s", f.file, cmdutil.Reason(err))}
		}
		names, f.fileHash = append(names, lines(place.TextOf(data))...), run.TopicsHash(data)
	}
	own := strings.Trim(w.URL.Path, "/")
	if f.count == "" {
		if len(names) == 0 && own == "" && f.op != cluster.OpListTopics {
			return nil, &protocol.Error{Err: errors.New("no topic was named"), Hint: fmt.Sprintf("put it into the target, %s/TOPIC, or after it", strings.TrimRight(w.Target(), "/"))}
		}
		return names, nil
	}
	n, err := units.ParseCount(f.count)
	switch {
	case err != nil:
		return nil, fmt.Errorf("--count: %w", err)
	case n == 0 || n > mostTopics:
		return nil, &protocol.Error{Err: fmt.Errorf("--count: %s is not between 1 and ten million", f.count)}
	case len(names) > 0 || own == "":
		return nil, &protocol.Error{Err: errors.New("--count needs one topic in the target, as the prefix of the names"), Hint: "kafka://127.0.0.1:9092/load --count 100 is load-0 to load-99"}
	}
	if err := room.Check([]protocol.Need{cluster.NamesNeed(own+"-", int(n))}); err != nil {
		return nil, err
	}
	return cluster.NumberedNames(own+"-", int(n)), nil
}

// lines are the lines of a file that are neither empty nor comments.
func lines(data []byte) []string {
	var out []string
	for l := range strings.Lines(string(data)) {
		if l = strings.TrimSpace(l); l != "" && !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

// run does the work, prints the result and has its report stored.
func (t *topics) run(ctx context.Context, f *topicFlags, args []string, w cluster.TopicLoad, on *workload.Workload) error {
	job := f.job(args, &w, on)
	var r *cluster.TopicResult
	job.Load = func(ctx context.Context, began func()) (string, *load.Result, error) {
		w.Started = func(time.Time) { began() }
		var of *load.Result
		var err error
		if r, of, err = measured(ctx, w); err != nil {
			return "", nil, err
		}
		return on.Target(), of, nil
	}
	err := t.keep(ctx, &f.Settings, job, func(d *report.Document, more []report.Condition) error {
		if !d.Trust.OK && r.Requests > 1 {
			t.Warn("the times are not to be trusted: " + strings.Join(d.Trust.Reasons, ", "))
		}
		return t.done(ctx, r, f.json, more, nil)
	})
	return ended(ctx, err)
}

// ended is the error of a load, which is of no interest if the user ended it.
func ended(ctx context.Context, err error) error {
	if e := (cmdutil.Exit{}); err != nil && ctx.Err() != nil && !errors.As(err, &e) {
		return context.Canceled
	}
	return err
}

// done prints a result. The error has the exit code.
func (t *topics) done(ctx context.Context, r *cluster.TopicResult, asJSON bool, more []report.Condition, err error) error {
	if err != nil {
		return ended(ctx, err)
	}
	d := topicsDocument(r)
	if asJSON {
		err = cmdutil.WriteJSON(t.Out, d)
	} else {
		d.text(t.Out, t.Style)
		where(t.Out, more)
	}
	switch {
	case err != nil:
		return err
	case r.Interrupted:
		return cmdutil.Exit{Code: host.ExitInterrupted}
	case r.Failed+r.Unknown > 0:
		return cmdutil.Exit{Code: host.ExitBroken}
	}
	return nil
}
