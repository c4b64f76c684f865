package kafkatools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"carronade/internal/compat"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

// Share is kafka-share-consumer-perf-test.
var Share = compat.Tool{
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
func shareOptions() []option {
	out := []option{
		{name: "group", word: "gid", otherwise: "perf-share-consumer", help: "The share group to consume in."},
		{name: "threads", kind: integer, word: "count", otherwise: "1", help: "Number of consumers that share the load."},
		{name: "show-detailed-stats", kind: noValue, help: "Also print a row for each reporting interval; here of all consumers together."},
		{name: "show-consumer-stats", kind: noValue, help: "Also print a row for each consumer."},
	}
	for _, o := range consumerOptions {
		if slices.Contains(shareNames, o.name) {
			out = append(out, o.option)
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
func shareAt(now clock) func(context.Context, *compat.Program) (int, error) {
	return func(ctx context.Context, p *compat.Program) (int, error) { return runShare(ctx, p, now) }
}

func runShare(ctx context.Context, p *compat.Program, now clock) (int, error) {
	asked, err := askedGeneration(p.Generation, of41)
	if err != nil {
		return 1, err
	}
	usage := func(text string) (int, error) {
		fmt.Fprintf(p.Err, "%s\n%s\n%s%s", text, optionTable(shareOptions()), compat.CommonHelp, shareDiffers)
		return 1, nil
	}
	if len(p.Args) == 0 {
		return usage(aboutShare)
	}
	v, err := parseOptions(shareOptions(), p.Args)
	switch {
	case err != nil:
		return usage(err.Error())
	case v.has("help"):
		return usage(aboutShare)
	case v.has("version"):
		fmt.Fprintln(p.Out, version)
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
	if s.count <= 0 {
		fmt.Fprintln(p.Err, "no records were requested, so nothing was run")
		l.started = now()
		l.end(&report.Document{})
		return 0, nil
	}
	d, code, err := runAndPrint(ctx, p, &s.workload().Document, l, now)
	if d != nil {
		l.hint(p.Err, d)
	}
	return code, err
}

// shareGeneration derives the generation and checks the options.
func shareGeneration(asked generation, v *optionValues) (generation, error) {
	since := ""
	for _, name := range []string{"num-records", "command-config", "command-property"} {
		if v.has(name) {
			since = name
		}
	}
	switch {
	case asked == of41 && since != "":
		return 0, fmt.Errorf("%s is not a recognized option", since)
	case asked == of41, asked == guessed && since == "" && (v.has("messages") || v.has("consumer.config")):
		return of41, v.missing("topic", "messages", "bootstrap-server")
	}
	return of43, first(v.missing("topic", "bootstrap-server"), v.oneOf("messages", "num-records"), v.exclusive("consumer.config", "command-config"))
}

// read reads the options' values.
func (s *shareSettings) read(v *optionValues) error {
	s.latest, s.detailed, s.header, s.metrics = false, v.has("show-detailed-stats"), !v.has("hide-header"), v.has("print-metrics")
	s.share, s.from, s.fileFlag = true, "--bootstrap-server", "--command-config"
	file, pattern := "", ""
	for name, to := range map[string]*string{"bootstrap-server": &s.brokers, "topic": &s.topic, "group": &s.group, "date-format": &pattern} {
		text, err := v.text(name)
		if err != nil {
			return err
		}
		*to = text
	}
	for name, to := range map[string]*int64{
		"threads": &s.threads, "fetch-size": &s.fetchSize, "socket-buffer-size": &s.bufferSize, "timeout": &s.timeout, "reporting-interval": &s.interval,
	} {
		n, err := v.number(name)
		if err != nil {
			return err
		}
		*to = n
	}
	s.byName = true
	var wrong error
	if s.brokers, wrong = readServers(s.brokers); wrong != nil {
		return wrong
	}
	for _, name := range []string{"messages", "num-records"} {
		if v.has(name) {
			n, err := v.number(name)
			if err != nil {
				return err
			}
			s.count = n
		}
	}
	for _, name := range []string{"command-config", "consumer.config"} {
		if v.has(name) {
			text, err := v.text(name)
			if err != nil {
				return err
			}
			file, s.fileFlag = text, "--"+name
		}
	}
	var err, bad error
	s.dates, bad = parseDate(pattern)
	if err = first(bad, s.check()); err != nil {
		return err
	}
	s.props, err = readProperties(file, withValues(v.all("command-property")))
	return err
}

// workload translates the settings to the workload of the consumer's tool, in a
// share group.
func (s *shareSettings) workload() *compat.Draft {
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

func (l *shareLines) metrics(d *report.Document) []*metrics {
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
		float64(s.Total.Bytes)/mib, per(float64(bytes)/mib, length), per(float64(n), length), s.Total.Consumed, length.Milliseconds())
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
			float64(bytes)/mib, per(float64(bytes)/mib, length), per(float64(n), length), n, length.Round(time.Millisecond).Milliseconds())
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

// A member contains the counts delivered to one consumer.
type member struct{ events, bytes uint64 }

// members are the members of the share group, from the report's facts; all zero
// without a topic.
func (s *shareSettings) members(d *report.Document) []member {
	out := make([]member, s.threads)
	var facts struct {
		Events []uint64 `json:"member_events"`
		Bytes  []uint64 `json:"member_bytes"`
	}
	data, err := json.Marshal(d.Facts["share_group"])
	if err = errors.Join(err, json.Unmarshal(data, &facts)); err != nil {
		return out
	}
	for i := range min(len(out), len(facts.Events), len(facts.Bytes)) {
		out[i] = member{facts.Events[i], facts.Bytes[i]}
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
