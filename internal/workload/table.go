package workload

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

// The operations of the load itself; kinds may have others.
const (
	Produce    = "produce"
	Consume    = "consume"
	RoundTrip  = "roundtrip"
	ReadSingle = "read"     // events one by one, by their places
	Pipeline   = "pipeline" // produces, and reads each batch by its place after its ack
)

// Headings of the load's own settings, in the order of help.
const (
	groupWork    = "what to do"
	groupPace    = "pace"
	groupEnd     = "when to stop"
	groupLimits  = "limits that decide the exit code"
	groupBatches = "how batches are made and sent"
	groupReport  = "report and output"
)

// notReading marks settings that do not apply to consuming.
var notReading = []string{Consume}

// notGroups marks settings of consumer groups that read what a run writes.
var notGroups = []string{Produce, Consume, ReadSingle, Pipeline}

// loadTable is the table of the load's settings, in the order of help and documents. A kind's
// option of the same name replaces a row: it may have another default, but has the same type.
func loadTable() []Setting {
	return []Setting{
		{
			Option: protocol.Option{Name: "op", Group: groupWork, Independent: true, Help: "operation: carronade help targets lists them", Word: "OP"},
		},
		{
			Option: protocol.Option{Name: "verify", Type: protocol.Bool, Group: groupWork, Independent: true, Help: "read back what was sent and account for every event"},
			NotOps: []string{Consume, ReadSingle, Pipeline},
		},
		{
			Option: protocol.Option{Name: "groups", Type: protocol.Int, Group: groupWork, Independent: true, Help: "number of consumer groups, each of which reads every event while the run writes"},
			NotOps: notGroups,
			check:  countBetween(1, 1000),
		},
		{
			Option: protocol.Option{Name: "members", Type: protocol.Int, Group: groupWork, Independent: true, Help: "members of each group for each topic (default: 1); consuming: readers that divide the partitions"},
			NotOps: []string{Produce, ReadSingle, Pipeline},
			check:  countBetween(1, 10_000),
		},
		{
			Option: protocol.Option{Name: "seed", Type: protocol.Int, Default: "1", Group: groupWork, Help: "seed of payloads, keys and random schedules"},
		},
		{
			Option: protocol.Option{Name: "repeat", Type: protocol.Int, Default: "1", Group: groupWork, Help: "number of runs, with a report each; one that is not trusted is replaced"},
			check:  countBetween(1, 10_000),
		},

		{
			Option: protocol.Option{Name: "rate", Type: protocol.Rate, Group: groupPace, Independent: true, Help: "open loop: events due per second, such as 50k/s"},
			NotOps: notReading,
			check:  checkRate,
		},
		{
			Option: protocol.Option{Name: "shape", Group: groupPace, Independent: true, Help: "open loop at a changing rate: carronade help shapes", Word: "SHAPE"},
			NotOps: notReading,
			check:  checkShape,
		},
		{
			Option: protocol.Option{Name: "concurrency", Type: protocol.Int, Group: groupPace, Independent: true, Help: "closed loop: number of batches always in flight"},
			Short:  "c",
			NotOps: notReading,
			check:  countBetween(1, 1_000_000),
		},

		{
			Option: protocol.Option{Name: "for", Type: protocol.Duration, Group: groupEnd, Independent: true, Help: "stop after this time, not counting warm-up"},
			check:  durationBetween(time.Millisecond, 366*24*time.Hour),
		},
		{
			Option: protocol.Option{Name: "count", Type: protocol.Int, Group: groupEnd, Independent: true, Help: "stop after this number of events, such as 10M"},
			check:  countBetween(1, 1e15),
		},
		{
			Option: protocol.Option{Name: "count-at-most", Type: protocol.Bool, Group: groupEnd, Help: "with --count: fewer are fine if time or bytes end the run first"},
		},
		{
			Option: protocol.Option{Name: "bytes", Type: protocol.Size, Group: groupEnd, Independent: true, Help: "stop after this many bytes of events"},
			check:  sizeAtLeast(1),
		},
		{
			Option: protocol.Option{Name: "warmup", Group: groupEnd, Independent: true, Help: "warm-up first: a time, or a number of events", Word: "TIME|N"},
			NotOps: notReading,
			check:  checkWarmup,
		},
		{
			Option: protocol.Option{Name: "drain", Type: protocol.Duration, Default: "10s", Group: groupEnd, Help: "how long to wait for the last answers"},
			NotOps: notReading,
			check:  durationBetween(time.Millisecond, 366*24*time.Hour),
		},
		{
			Option: protocol.Option{Name: "idle-timeout", Type: protocol.Duration, Default: "10s", Group: groupEnd, Help: "stop when nothing has arrived for this long"},
			NotOps: []string{Produce, ReadSingle, Pipeline},
			check:  durationBetween(time.Millisecond, 24*time.Hour),
		},

		{
			Option: protocol.Option{Name: "failures", Type: protocol.Int, Group: groupLimits, Help: "stop when more than N events failed"},
			NotOps: notReading,
			check:  countBetween(1, 1e15),
		},
		{
			Option: protocol.Option{Name: "failure-rate", Type: protocol.Share, Group: groupLimits, Help: "stop when more than this share failed, such as 1%"},
			NotOps: notReading,
			check:  checkShare,
		},
		{
			Option: protocol.Option{Name: "slo", Type: protocol.List, Group: groupLimits, Help: "a limit on a result, such as 'p99<20ms' (repeatable; see: carronade help slo)", Word: "LIMIT"},
			Aside:  true,
			check:  checkSLO,
		},
		{
			Option: protocol.Option{Name: "abort-on-fail", Type: protocol.Duration, Group: groupLimits, Help: "end the run when a limit of --slo breaks, but not in the first DELAY of the measurement", Word: "DELAY"},
			Aside:  true,
			Bare:   "0s",
			check:  durationBetween(0, 24*time.Hour),
		},

		{
			Option: protocol.Option{Name: "batch-events", Type: protocol.Int, Group: groupBatches, Independent: true, Help: "events per batch (default: as many as are due)"},
			NotOps: notReading,
			check:  countBetween(1, 10_000_000),
		},
		{
			Option: protocol.Option{Name: "linger", Type: protocol.Duration, Default: "5ms", Group: groupBatches, Independent: true, Help: "how long events wait for their batch to fill"},
			NotOps: notReading,
			check:  durationBetween(0, time.Minute),
		},
		{
			Option: protocol.Option{Name: "max-in-flight", Type: protocol.Int, Default: "5", Group: groupBatches, Independent: true, Help: "batches in flight per connection (by default many clients share 1,000, with at least 5 each)"},
			NotOps: notReading,
			check:  countBetween(1, 1_000_000),
		},
		{
			Option: protocol.Option{Name: "overload", Default: "queue", Choices: []string{"queue", "drop"}, Group: groupBatches, Independent: true, Help: "what happens to due events while that limit is reached"},
			NotOps: notReading,
		},
		{
			Option: protocol.Option{Name: "retry", Type: protocol.Int, Default: "0", Group: groupBatches, Independent: true, Help: "send failed events again, at most N times"},
			NotOps: notReading,
			check:  countBetween(0, 1000),
		},
		{
			Option: protocol.Option{Name: "threads", Type: protocol.Int, Group: groupBatches, Independent: true, Help: "maximum of sending threads (default: one per client, at most the processors)"},
			check:  countBetween(1, 1024),
		},

		{
			Option: protocol.Option{Name: "interval", Type: protocol.Duration, Default: "1s", Group: groupReport, Help: "interval of the series and of the progress lines"},
			Aside:  true,
			check:  durationBetween(10*time.Millisecond, 24*time.Hour),
		},
		{
			Option: protocol.Option{Name: "percentiles", Group: groupReport, Help: "more percentiles, such as 25,75,99.95", Word: "P,P"},
			Aside:  true,
			check:  checkPercentiles,
		},
		{
			Option: protocol.Option{Name: "client-metrics", Type: protocol.Bool, Group: groupReport, Help: "report what each connection did, by broker"},
			Aside:  true,
		},
		{
			Option: protocol.Option{Name: "hdr", Group: groupReport, Help: "write the histograms as an HdrHistogram log", Word: "FILE"},
			Aside:  true,
		},
		{
			Option: protocol.Option{Name: "trace", Group: groupReport, Help: "write a row for each batch, as Parquet", Word: "FILE"},
			Aside:  true,
			NotOps: notReading,
		},
		{
			Option: protocol.Option{Name: "trace-events", Type: protocol.Share, Group: groupReport, Help: "rows for single events instead, for this share of them, such as 1%"},
			Aside:  true,
			NotOps: notReading,
			check:  checkShare,
		},
		{
			Option:   protocol.Option{Name: "json", Type: protocol.Bool, Group: groupReport, Help: "print the report as JSON on stdout"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "json-file", Group: groupReport, Help: "also write the report as JSON to a file", Word: "FILE"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "full", Type: protocol.Bool, Group: groupReport, Help: "print the whole report, not only the first page"},
			FlagOnly: true,
		},
		{
			Option:   protocol.Option{Name: "quiet", Type: protocol.Bool, Group: groupReport, Help: "do not show progress"},
			FlagOnly: true,
		},
	}
}

// Table returns every setting of a workload for the kind: those of the load, then the kind's
// options. With a nil kind, only those of the load.
func Table(kind protocol.Kind) []Setting {
	table := slices.Concat(loadTable(), backlogTable(), keepTable(), systemTable(), faultTable(), liveTable(), fleetTable())
	if kind == nil {
		return table
	}
	if ops := kind.Ops(); len(ops) > 0 {
		op := find(table, "op")
		op.Choices, op.Default = ops, ops[0]
	}
	for _, o := range kind.Options() {
		if own := find(table, o.Name); own != nil {
			own.Default = o.Default
			if o.Help != "" {
				own.Help = o.Help
			}
			continue
		}
		table = append(table, Setting{Option: o, Kind: kind.Name()})
	}
	return table
}

func find(table []Setting, name string) *Setting {
	i := slices.IndexFunc(table, func(s Setting) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return &table[i]
}

func checkRate(text string) error {
	r, err := units.ParseRate(text)
	if err != nil {
		return err
	}
	if r == 0 {
		return &protocol.Error{
			Err:  errors.New("must be above 0"),
			Hint: "leave --rate out to send as fast as the in-flight limit allows",
		}
	}
	return load.CheckRate(r)
}

func checkShape(text string) error {
	_, err := load.ParseShape(text)
	if err == nil {
		return nil
	}
	// The list of forms is long; a help subject has it.
	what, _, _ := strings.Cut(err.Error(), "; shapes are")
	return &protocol.Error{Err: errors.New(what), Hint: "carronade help shapes lists the forms"}
}

func checkShare(text string) error {
	f, err := units.ParseShare(text)
	switch {
	case err != nil:
		return err
	case f <= 0 || f > 1:
		return fmt.Errorf("%s is not a valid share: it must be above 0%% and at most 100%%", text)
	}
	return nil
}

func checkPair(text string) error {
	k, _, ok := strings.Cut(text, "=")
	if !ok || strings.TrimSpace(k) == "" {
		return fmt.Errorf("must be NAME=VALUE, such as team=payments, not %q", text)
	}
	return nil
}

func countBetween(low, high uint64) func(string) error {
	return func(text string) error {
		n, err := units.ParseCount(text)
		switch {
		case err != nil:
			return err
		case n < low:
			return fmt.Errorf("must be at least %d, not %s", low, text)
		case n > high:
			return fmt.Errorf("must be at most %s, not %s", units.FormatCount(high), text)
		}
		return nil
	}
}

func sizeAtLeast(low int64) func(string) error {
	return func(text string) error {
		n, err := units.ParseSize(text)
		if err == nil && n < low {
			err = fmt.Errorf("must be at least %s, not %s", units.FlagSize(low), text)
		}
		return err
	}
}

func durationBetween(low, high time.Duration) func(string) error {
	return func(text string) error {
		d, err := units.ParseDuration(text)
		switch {
		case err != nil:
			return err
		case d < low && low == time.Millisecond && d == 0:
			return errors.New("must be above 0")
		case d < low:
			return fmt.Errorf("must be at least %s, not %s", units.FlagDuration(low), text)
		case d > high:
			return fmt.Errorf("must be at most %s, not %s", units.FlagDuration(high), text)
		}
		return nil
	}
}

func checkWarmup(text string) error {
	_, _, err := parseWarmup(text)
	return err
}

// parseWarmup parses a time or a number of events. Ambiguous text such as 10m is refused.
func parseWarmup(text string) (time.Duration, uint64, error) {
	d, noTime := units.ParseDuration(text)
	n, noCount := units.ParseCount(text)
	switch {
	case noTime == nil && noCount == nil && n != 0:
		return 0, 0, &protocol.Error{
			Err:  fmt.Errorf("%s is both a time and a number of events", text),
			Hint: fmt.Sprintf("write %ds for the time, %d for the events", int64(d/time.Second), n),
		}
	case noTime == nil && d > 24*time.Hour:
		return 0, 0, fmt.Errorf("must be at most a day, not %s", text)
	case noTime == nil:
		return d, 0, nil
	case noCount == nil:
		return 0, n, nil
	}
	return 0, 0, fmt.Errorf("must be a time such as 2s or a number of events such as 50k, not %q", text)
}

// parsePercentiles parses percentiles above 0 and at most 100, separated by commas, and sorts
// them.
func parsePercentiles(text string) ([]float64, error) {
	var ps []float64
	for part := range strings.SplitSeq(text, ",") {
		part = strings.TrimPrefix(strings.TrimSpace(part), "p")
		p, err := strconv.ParseFloat(part, 64)
		if err != nil || !(p > 0 && p <= 100) {
			return nil, fmt.Errorf("%q is not a percentile: they are above 0 and at most 100, such as 25,75,99.95", part)
		}
		if !slices.Contains(ps, p) {
			ps = append(ps, p)
		}
	}
	if len(ps) > 64 {
		return nil, fmt.Errorf("%d percentiles are more than a report can show: at most 64", len(ps))
	}
	slices.Sort(ps)
	return ps, nil
}

func checkPercentiles(text string) error {
	return second(parsePercentiles(text))
}
