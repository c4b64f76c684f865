package kafkatools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"carronade/internal/dropin"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// Share is kafka-share-consumer-perf-test.
var Share = dropin.Tool{
	Name: "kafka-share-consumer-perf-test", Aliases: []string{"ShareConsumerPerformance", "org.apache.kafka.tools.ShareConsumerPerformance"},
	Short: "Kafka: records consumed in a share group (4.1, 4.2 and 4.3)", Kind: "kafka",
	Main: shareAt(time.Now),
}

const shareDiffers = `
Here exactly the requested number of records is counted, the wait for the
timeout is not part of the time, and a run with too few records exits with 1
(--strict: like the tool). By default a share group begins at the end: set its
share.auto.offset.reset to earliest with kafka-configs --entity-type groups. See
docs/coming-from/kafka-consumer-tools.md.
`

const aboutShare = "This tool is used to verify the share consumer performance."

// shareNames are the options in common with the consumer's tool.
var shareNames = []string{
	"bootstrap-server", "topic", "messages", "num-records", "fetch-size", "socket-buffer-size", "consumer.config", "command-config",
	"command-property", "print-metrics", "timeout", "reporting-interval", "date-format", "hide-header", "help", "version",
}

// shareOptions are the share consumer's options. As in the consumer's tool, 4.1 did
// not have num-records, command-config and command-property.
func shareOptions() []joptOption {
	out := []joptOption{
		{name: "group", word: "gid", otherwise: "perf-share-consumer", help: "The share group to consume in."},
		{name: "threads", kind: integerValue, word: "count", otherwise: "1", help: "Number of consumers that share the load."},
		{name: "show-detailed-stats", kind: noValue, help: "Also print a row for each reporting interval; here of all consumers together."},
		{name: "show-consumer-stats", kind: noValue, help: "Also print a row for each consumer."},
	}
	for _, o := range consumerOptions {
		if slices.Contains(shareNames, o.name) {
			out = append(out, o.joptOption)
		}
	}
	return out
}

// shareSettings are the values of a command line.
type shareSettings struct {
	consumerSettings
	perConsumer bool // a row for each consumer
	ids         bool // since 4.3: each consumer has a separate id, shown in its row
}

// shareAt returns the tool's main function with a clock.
func shareAt(now clock) func(context.Context, *dropin.Program) (int, error) {
	return func(ctx context.Context, p *dropin.Program) (int, error) { return runShare(ctx, p, now) }
}

func runShare(ctx context.Context, p *dropin.Program, now clock) (int, error) {
	asked, err := askedGeneration(p.Generation, of41)
	if err != nil {
		return 1, err
	}
	usage := func(text string) (int, error) {
		return joptUsage(p, text, shareOptions(), shareDiffers)
	}
	if len(p.Args) == 0 {
		return usage(aboutShare)
	}
	v, err := parseJopt(shareOptions(), p.Args)
	switch {
	case err != nil:
		return usage(err.Error())
	case v.has("help"):
		return usage(aboutShare)
	case v.has("version"):
		fmt.Fprintln(p.Out, kafkaVersion)
		return 0, nil
	}
	s := &shareSettings{perConsumer: v.has("show-consumer-stats")}
	if s.generation, err = shareGeneration(asked, v); err != nil {
		return usage(err.Error())
	}
	if err := s.read(v); err != nil {
		fmt.Fprintln(p.Err, err)
		return 1, nil
	}
	s.ids = s.generation == of43 && p.Generation != "4.2"
	s.consumerSettings.warn(p.Err, v)
	if s.detailed && s.threads > 1 {
		fmt.Fprintln(p.Err, "warning: --show-detailed-stats: the rows are of all consumers together, and say share consumer 1")
	}
	warnDeprecated(p.Out, s.generation, v)
	l := &shareLines{s: s, w: p.Out, strict: p.Strict}
	if s.header {
		fmt.Fprintln(p.Out, "start.time, end.time, data.consumed.in.MB, MB.sec, nMsg.sec, data.consumed.in.nMsg, fetch.time.ms")
	}
	d, code, err := runAndPrint(ctx, p, &s.workload().Document, s.count, l, now)
	if d != nil {
		l.hint(p.Err, d)
	}
	return code, err
}

// shareGeneration derives the generation and checks the options.
func shareGeneration(asked kafkaGeneration, v *joptValues) (kafkaGeneration, error) {
	since := ""
	for _, name := range []string{"num-records", "command-config", "command-property"} {
		if v.has(name) {
			since = name
		}
	}
	switch {
	case asked == of41 && since != "":
		return 0, fmt.Errorf("%s is not a recognized option", since)
	case asked == of41, asked == guessedGeneration && since == "" && (v.has("messages") || v.has("consumer.config")):
		return of41, v.missing("topic", "messages", "bootstrap-server")
	}
	return of43, firstError(v.missing("topic", "bootstrap-server"), v.oneOf("messages", "num-records"), v.exclusive("consumer.config", "command-config"))
}

// read reads the options' values.
func (s *shareSettings) read(v *joptValues) error {
	r := &joptReader{joptValues: v}
	s.share, s.byName, s.from = true, true, "--bootstrap-server"
	s.brokers, s.topic, s.group, s.threads = r.servers(r.text("bootstrap-server")), r.text("topic"), r.text("group"), r.number("threads")
	return s.readCommon(r)
}

// workload translates the settings to the workload of the consumer's tool, in a
// share group.
func (s *shareSettings) workload() *dropin.Draft {
	d := s.consumerSettings.workload(false)
	d.Entries = slices.DeleteFunc(d.Entries, func(e workload.Entry) bool { return slices.Contains([]string{"group", "from", "fetch-max"}, e.Name) })
	// --fetch-size limits the entire answer here, and therefore also its parts.
	d.Setf("fetch-max", "--fetch-size", "%d", s.fetchSize)
	for i, e := range d.Entries {
		if e.Name == "client-id" {
			d.Entries[i].Values = []string{shareClientID}
		}
	}
	d.Set("share-group", "--group", s.group)
	return d
}

// shareLines prints a run's lines.
type shareLines struct {
	s      *shareSettings
	w      io.Writer
	strict bool

	started time.Time
	before  load.Snapshot
}

func (l *shareLines) begun(at time.Time) { l.started = at }

func (l *shareLines) metrics(d *report.Document) []*kafkaMetrics {
	if !l.s.metrics {
		return nil
	}
	return shareMetrics(d, l.s)
}

// hint names the most frequent reason why a group consumed nothing.
func (l *shareLines) hint(w io.Writer, d *report.Document) {
	if d.Totals.Consumed == 0 && d.Stopped == load.ByIdle {
		fmt.Fprintln(w, "hint: a share group begins at the end of its topics, unless its setting share.auto.offset.reset is earliest")
	}
}

// interval prints a row of all consumers.
func (l *shareLines) interval(s load.Snapshot) {
	n, bytes := s.Total.Consumed-l.before.Total.Consumed, s.Total.Bytes-l.before.Total.Bytes
	if !l.s.detailed || n == 0 {
		return // the tool prints rows only when records arrive
	}
	length := s.At - l.before.At
	fmt.Fprintf(l.w, "%s, %s, %.4f, %.4f, %.4f, %d, %d for share consumer 1\n",
		l.s.dates.format(l.started.Add(l.before.At)), l.s.dates.format(l.started.Add(s.At)),
		float64(s.Total.Bytes)/mib, dropin.Per(float64(bytes)/mib, length), dropin.Per(float64(n), length), s.Total.Consumed, length.Milliseconds())
	l.before = s
}

// end prints the consumers' rows and their total.
func (l *shareLines) end(d *report.Document) {
	length := units.Seconds(d.Totals.ElapsedS)
	if tooFew(d) && l.strict {
		length += time.Duration(l.s.timeout) * time.Millisecond // the tool's time included the wait
	}
	row := func(bytes, n uint64) string {
		return fmt.Sprintf("%s, %s, %.4f, %.4f, %.4f, %d, %d", l.s.dates.format(l.started), l.s.dates.format(l.started.Add(length)),
			float64(bytes)/mib, dropin.Per(float64(bytes)/mib, length), dropin.Per(float64(n), length), n, length.Round(time.Millisecond).Milliseconds())
	}
	if l.s.perConsumer {
		id := ""
		for i, m := range l.s.members(d) {
			if l.s.ids {
				id = " having client id " + l.s.clientID(i)
			}
			fmt.Fprintf(l.w, "Share consumer %d%s consumption metrics- %s\n", i+1, id, row(m.bytes, m.events))
		}
	}
	if tooFew(d) {
		l.s.warnTooFew(l.w)
	}
	fmt.Fprintln(l.w, row(d.Totals.Bytes, d.Totals.Consumed))
}

// A shareMember contains the counts delivered to one consumer.
type shareMember struct{ events, bytes uint64 }

// members are the members of the share group, from the report's facts; all zero
// without a topic.
func (s *shareSettings) members(d *report.Document) []shareMember {
	out := make([]shareMember, s.threads)
	var facts struct {
		Events []uint64 `json:"member_events"`
		Bytes  []uint64 `json:"member_bytes"`
	}
	data, err := json.Marshal(d.Facts["share_group"])
	if err = errors.Join(err, json.Unmarshal(data, &facts)); err != nil {
		return out
	}
	for i := range min(len(out), len(facts.Events), len(facts.Bytes)) {
		out[i] = shareMember{facts.Events[i], facts.Bytes[i]}
	}
	return out
}

// clientID is the tool's client id of consumer i; before 4.3 all had the same.
func (s *shareSettings) clientID(i int) string {
	id := s.props.clientID(shareClientID)
	if s.ids {
		id = fmt.Sprintf("%s-%d", id, i+1)
	}
	return id
}
