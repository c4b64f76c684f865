package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"carronade/internal/advice"
	"carronade/internal/layout"
	"carronade/load"
	"carronade/payload"
	"carronade/protocol"
)

// A subject is a help page that does not belong to a command.
type subject struct {
	name, short string
	text        func(s *session) string
}

func subjects() []subject {
	return []subject{
		{"targets", "how a target is written", (*session).targetsText},
		{"shapes", "rates that change: --shape", func(*session) string {
			return "--shape makes an open loop whose rate changes:\n\n" + indent(load.ShapeForms) + `
A shape of several steps reports each step separately. --warmup sends at the
rate that the shape begins with, and the shape begins after it.
`
		}},
		{"limits", "what makes a run fail, and its exit code", limitsText},
		{"slo", "limits on results: --slo 'p99<20ms'", sloText},
		{"events", "what events are made of: --size, --payload, --key", func(*session) string {
			return "What events are made of. The same seed gives the same events.\n" +
				forms("--size SIZE", payload.SizeForms) + forms("--payload PAYLOAD", payload.PayloadForms) + forms("--key KEY", payload.KeyForms)
		}},
		{"expressions", "texts that differ between events: ${...} in --key, --header", (*session).expressionsText},
		{"filters", "how reports are chosen: branch=main rate>=50k/s", func(*session) string { return filtersText }},
		{"units", "how numbers are written", func(*session) string { return unitsText }},
		{"files", "workloads in files: -f FILE", func(*session) string { return filesText }},
		{"exit-codes", "what the exit code means", func(*session) string { return exitText }},
		{"words", "what the words of a report mean", (*session).wordsText},
	}
}

func (s *session) helpCommand() *cobra.Command {
	list := subjects()
	var names []string
	long := "Help on a command or a subject.\n\nsubjects\n"
	for _, sub := range list {
		names = append(names, sub.name)
		var b strings.Builder
		writeRow(&b, 14, sub.name, sub.short)
		long += b.String()
	}
	return &cobra.Command{
		Use:       "help [COMMAND|SUBJECT]",
		Short:     "on a command, or on a subject such as shapes or exit-codes",
		Long:      strings.TrimRight(long, "\n"),
		ValidArgs: names,

		DisableFlagsInUseLine: true, // cobra adds this command too late for plainUse
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			if len(args) == 0 {
				return root.Help()
			}
			for _, sub := range list {
				if sub.name == args[0] {
					_, err := io.WriteString(cmd.OutOrStdout(), strings.TrimRight(sub.text(s), "\n")+"\n")
					return err
				}
			}
			at, rest, err := root.Find(args)
			if err == nil && len(rest) == 0 {
				return at.Help()
			}
			otherwise := "the subjects are " + strings.Join(names, ", ")
			for _, c := range root.Commands() {
				names = append(names, c.Name())
			}
			return &protocol.Error{
				Err:  fmt.Errorf("unknown command or help subject %q", strings.Join(args, " ")),
				Hint: advice.DidYouMean(args[0], names, "carronade help %s", otherwise),
			}
		},
	}
}

func (s *session) targetsText() string {
	var b strings.Builder
	b.WriteString("A target is a URL; its scheme picks the protocol.\n")
	for _, k := range s.Kinds {
		form, about := k.Schemes()[0]+"://HOST:PORT", sentence("schemes: "+strings.Join(k.Schemes(), ", "))
		if p := entryOf(k); p != nil {
			form, about = p.form, p.about
		}
		fmt.Fprintf(&b, "\n  %s\n", form)
		for _, line := range layout.Wrap(about, helpWidth-6) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
		for _, line := range layout.Wrap("operations (--op): "+strings.Join(k.Ops(), ", "), helpWidth-6) {
			fmt.Fprintf(&b, "      %s\n", line)
		}
	}
	b.WriteString("\nA URL must not contain a user or password: see `carronade run TARGET --help`,\nsecurity.\n")
	return b.String()
}

func indent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		b.WriteString("  " + strings.TrimRight(line, "\n") + "\n")
	}
	return b.String()
}

// forms formats "form, such as x; form; ..." with one form per line.
func forms(title, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s\n", title)
	for part := range strings.SplitSeq(text, ";") {
		for i, line := range layout.Wrap(part, helpWidth-4) {
			fmt.Fprintf(&b, "%s%s\n", "    "[:2+2*min(i, 1)], line)
		}
	}
	return b.String()
}

const unitsText = `A number may have a unit; a duration must have one.

  durations    500us 5ms 20s 5m 1h30m 7d
  rates        50000/s 50k/s 3M/s 0.5/s 3/min 2/h; a bare number is events per
               second
  counts       1000000 1_000_000 1M 1e6
  sizes        100 64KiB 1.5MiB 64kB 1MB; a bare number is bytes
  shares       1% or 0.01

The same rule applies to all flags, files and filters. In counts and rates k, M,
G and T are powers of 1000, in either case. In sizes KiB, MiB, GiB and TiB are
powers of 1024, in any case, and kB, MB, GB and TB are powers of 1000.

Ambiguous values are refused: 64K, 64KB and 64kb as a size (64KiB or 64kB), 3m
as a rate (3M/s or 3/min), and 10m as a --warmup (600s, or 10000000 events).
`

const filtersText = `Filters choose among stored reports. A report must match all filters.

  branch=main           is; != is not
  rate>=50k/s           also <=, < and >; quote these, since they have a meaning
                        in a shell
  target~orders         a regular expression, found anywhere in the text
  started>=2026-11-01   a day or a moment
  started>=7d           or an age: the last seven days

A field is a setting of the workload (named like its flag), a label, a flag of
the system under test, a property of the host, or a measured number,
such as response_p99 or throughput. docs/reports.md lists them all; "carronade
report list --columns FIELD,FIELD" shows them.
`

const filesText = `A workload can be a file, in YAML or JSON. Its keys are the names of the flags,
and its values are those that the flags take:

` + filesExample + `
  carronade run -f orders.yaml --rate 80k/s

Flags override the file, and the file overrides the defaults. The workload of a
report in JSON is such a file. "carronade run --schema" prints a JSON schema
for editors.
`

const exitText = `  0     done, and every limit and comparison that was requested holds
  1     done, but a limit or a comparison that was requested does not hold (with
        --verify: events were lost or corrupted, or a consumer read aborted
        ones), or the system accepted no event at all
  2     failed: wrong usage or workload, no connection at the start, or the
        report could not be written
  3     done, but the measurement is not trustworthy: the generator was the
        limit, its clock or schedule failed, the system ended, or a fault left
        no connection (a noisy run keeps its code; of several repetitions,
        those that were replaced do not count)
  4     cannot tell. For --slo: only the delay of the generator may have broken
        the limit. For verify and compare --gate: too little history, or too
        noisy. For --verify: events were removed before they were read, or the
        reading did not reach them
  130   interrupted; the partial report is kept and marked

Drops, failures and losses are results: they decide the exit code through the
limits --slo, --failures, --failure-rate, --verify, and --count when it was not
reached. A limit is broken (1) if the result does not meet it even without the
delay that the generator may have added. If several codes apply, the order of
priority is 130, 2, 1, 3, 4.
`

// wordsText explains the vocabulary; each kind says what its events and batches are.
func (s *session) wordsText() string {
	var events, batches []string
	for _, k := range s.Kinds {
		if p := entryOf(k); p != nil && p.event != "" {
			events, batches = append(events, p.event), append(batches, p.batch)
		}
	}
	var b strings.Builder
	for _, row := range [][2]string{
		{"event", "what the system counts: " + joined(events...)},
		{"batch", "what is sent and answered in one piece: " + joined(batches...)},
	} {
		writeRow(&b, 18, row[0], row[1])
	}
	return b.String() + wordsText
}

const wordsText = `  client          one independent sender with its own connections
  open loop       events are due by a schedule, whatever the system does
  closed loop     a fixed concurrency: each caller sends when its last batch
                  is answered
  due, sent, done when the schedule says to send it, when it was handed to the
                  system, when the answer came
  batching        waited for its batch to fill; by design
  queueing        waited for the in-flight limit; caused by the system
  send delay      the generator's own lateness, and nothing else
  freeze          a time in which the generator itself did not run
  noisy           the generator may have affected a time, and the report says
                  by how much; beyond that a run is not trusted
  service time    done - sent, per batch
  response time   done - due, per event: what a user would wait
  offered         = sent + dropped + unsent
  sent            = acked + failed + unknown
  dropped         the in-flight limit was reached, and the policy is to drop
  unsent          due, and not sent when the run ended
  unknown         sent, and without a certain answer
  lost            acked, and not found when read back
  unread          acked, but removed before it could be read, or not
                  reached by the read-back
  duplicated, reordered, corrupted
                  found twice, out of order, altered
  recovered       unknown, and found after all
  contradicted    of these, refused for certain
  compacted       removed by compaction: a later event of its key is there
  phantom         of an aborted transaction, but seen by a read_committed
                  consumer
`

// joined is a list of the parts that are not empty.
func joined(parts ...string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(s string) bool { return s == "" }), ", ")
}
