package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/protocol"
	"carronade/units"
)

const calibrateLong = `Measures what this machine can generate: without a target (null://), and into a
discarding stand-in that runs beside it in its own process. The result is kept
for this host and cited in its reports, so that a reader can see how far a run
was from the generator's own limit. It does not affect verdicts or exit codes.
It is for a machine that measures maximum rates: run it once, when it is quiet.

--target, --size and --clients measure another workload than the default one.
Each is stored separately, and a report cites the one closest to its run.

--target is a kind of target, or the address of a discarding stand-in on another
machine, so that the network is included. Nothing is sent to a server that does
not discard.`

// calibrationSchema names the form of the kept file and of --json.
const calibrationSchema = "carronade.calibration/1"

// A calibration is the result, as it is stored.
type calibration struct {
	Schema     string `json:"schema"`
	Host       string `json:"host"`
	Processors int    `json:"processors"`
	report.Calibration
	NullCPUUS    float64 `json:"null_cpu_us_per_event"`
	DiscardCPUUS float64 `json:"discard_cpu_us_per_event"`
}

// The defaults of a calibration.
const (
	calibrationEvents  = 100 // size of the events, in bytes
	calibrationClients = 1
)

// calibrating is what to calibrate with.
type calibrating struct {
	target  string // as typed; "": the first kind with a discarding stand-in
	size    string // as typed; "": the kind's default
	clients int    // 0: the kind's default
	span    time.Duration
}

// firstSink is the kind that is calibrated with by default.
func firstSink() string {
	i := slices.IndexFunc(entries(), func(p kindEntry) bool { return p.sink != nil })
	if i < 0 {
		return "none"
	}
	return entries()[i].kind
}

func (s *session) calibrateCommand() *cobra.Command {
	var asJSON bool
	with := calibrating{span: 3 * time.Second}
	cmd := &cobra.Command{
		Use: "calibrate", Short: "what this machine can generate, kept and cited in reports",
		Long: calibrateLong, Example: calibrateExample, Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(cmd *cobra.Command, _ []string) error {
			c, err := s.calibrate(cmd.Context(), &with)
			if err != nil {
				return err
			}
			path, err := keepCalibration(c)
			if err != nil {
				path = ""
				s.warn(fmt.Sprintf("the calibration could not be saved, so reports will not cite it: %v", err))
			}
			if asJSON {
				return cmdutil.WriteJSON(s.out, c)
			}
			c.text(s.out, path)
			return nil
		}),
	}
	fs := cmd.Flags()
	fs.BoolVar(&asJSON, "json", false, "as JSON")
	fs.DurationVar(&with.span, "for", with.span, "how long each of the two measurements takes")
	fs.StringVar(&with.target, "target", "", "a kind of `TARGET`, or a discarding stand-in's address (default: "+firstSink()+")")
	fs.StringVar(&with.size, "size", "", "`SIZE` of a value (default: 100)")
	fs.IntVar(&with.clients, "clients", 0, "`N` independent clients (default: as in a run of that kind)")
	return cmd
}

func (s *session) calibrate(ctx context.Context, with *calibrating) (*calibration, error) {
	if with.span < 100*time.Millisecond || with.span > time.Hour {
		return nil, &protocol.Error{Err: fmt.Errorf("--for: %v is not a valid length for a calibration", with.span), Hint: "3s is enough on a quiet machine"}
	}
	if with.clients < 0 {
		return nil, &protocol.Error{Err: fmt.Errorf("--clients: %d is not a number of clients", with.clients), Hint: "give 1 or more"}
	}
	p, address, err := s.calibrated(with.target)
	if err != nil {
		return nil, err
	}
	c := &calibration{Schema: calibrationSchema, Host: hostName(), Processors: load.Processors()}
	c.At, c.Version = time.Now().UTC().Truncate(time.Second), version()
	if p != nil {
		c.Target = p.kind
	}
	// Only some kinds prepare their batches as null:// does.
	if p == nil || p.prepares != nil || p.sink == nil {
		s.note("to nowhere, for %s ...", units.FormatDuration(with.span))
		d, clients, err := s.fullSpeed(ctx, "null://", with, false)
		if err != nil {
			return nil, err
		}
		c.NullPerS, c.NullCPUUS, c.EventBytes, c.Clients = d.Totals.EventsPerS, d.Generator.CPUUSPerEvent, bytesPerEvent(d), clients
	}
	if p == nil || p.sink == nil {
		return c, nil // nothing to measure against
	}
	to, where := address, "into "+address
	end := func() error { return nil }
	if address == "" {
		sink, err := s.spawn(ctx, ctx, p.sink.args...)
		if err != nil {
			return nil, err
		}
		to, where, end = p.sink.target(sink.Addr()), "into a discarding stand-in beside it", sink.Stop
	}
	s.note("%s, for %s ...", where, units.FormatDuration(with.span))
	d, clients, err := s.fullSpeed(ctx, to, with, true)
	if stopErr := end(); err == nil {
		err = stopErr
	}
	if err != nil {
		return nil, err
	}
	c.DiscardPerS, c.DiscardCPUUS, c.Clients = d.Totals.EventsPerS, d.Generator.CPUUSPerEvent, clients
	if c.EventBytes == 0 {
		c.EventBytes = bytesPerEvent(d)
	}
	if address != "" {
		if u, err := url.Parse(address); err == nil {
			c.Server = u.Host
		}
	}
	return c, nil
}

// bytesPerEvent is the mean size of a run's events, in whole bytes.
func bytesPerEvent(d *report.Document) float64 {
	if t := &d.Totals; t.RateOf == report.RateConsumed && t.Consumed > 0 {
		return math.Round(float64(t.Bytes) / float64(t.Consumed))
	} else if t.Sent > 0 {
		return math.Round(float64(t.Bytes) / float64(t.Sent))
	}
	return 0
}

// calibrated returns the protocol that --target names, and the address if it has one. The
// protocol is nil if this program has none to calibrate with.
func (s *session) calibrated(name string) (p *kindEntry, address string, err error) {
	listed := s.listed()
	if name == "" {
		i := slices.IndexFunc(listed, func(p kindEntry) bool { return p.sink != nil })
		if i < 0 {
			return nil, "", nil
		}
		return &listed[i], "", nil
	}
	kind, rest, isURL := strings.Cut(name, "://")
	for i := range listed {
		p := &listed[i]
		switch {
		case !isURL && p.kind == kind, isURL && rest == "" && slices.Contains(s.kindOf(*p).Schemes(), kind):
			return p, "", nil
		case isURL && p.sink != nil && slices.Contains(s.kindOf(*p).Schemes(), kind):
			return p, name, nil
		}
	}
	var kinds []string
	for _, p := range listed {
		kinds = append(kinds, p.kind)
	}
	return nil, "", &protocol.Error{Err: errors.New("--target: not a kind of target to calibrate with"), Hint: "give one of " + strings.Join(kinds, ", ") + ", or a discarding stand-in's address"}
}

// fullSpeed sends without a limit. If discards is set, it sends nothing to a server that does
// not say that it discards. The number of clients is 0 if the kind chose it.
func (s *session) fullSpeed(ctx context.Context, to string, with *calibrating, discards bool) (d *report.Document, clients int, err error) {
	var settings workload.Document
	add := func(name, value string) { settings.Add(name, "the calibration's "+name, value) }
	add("target", to)
	add("for", with.span.String())
	add("warmup", min(time.Second, with.span).String())
	add("interval", "200ms")
	if with.size != "" {
		add("size", with.size)
	}
	if with.clients > 0 {
		add("clients", strconv.Itoa(with.clients))
	}
	w, err := workload.Resolve(s.Kinds, &settings, nil)
	if err != nil {
		return nil, 0, err
	}
	o := outputs{quiet: true, tasks: []task{{w: w}}, keep: &keeping{}}
	o.permit = func(facts map[string]any) error {
		if is, _ := facts["discards"].(bool); discards && !is {
			return &protocol.Error{
				Err:  fmt.Errorf("calibrate: %s is not a discarding stand-in", w.Target()),
				Hint: "a calibration sends as fast as it can; start carronade standin " + w.Kind.Name() + " --discard there",
			}
		}
		return nil
	}
	d, err = s.execute(ctx, o, 0)
	if err != nil {
		return nil, 0, err
	}
	if ctx.Err() != nil {
		return nil, 0, context.Canceled
	}
	if d.Totals.EventsPerS == 0 {
		return nil, 0, fmt.Errorf("calibrating against %s: no event was accepted", w.Target())
	}
	return d, int(clientsOf(w)), nil
}

func (c *calibration) text(w io.Writer, path string) {
	fmt.Fprintf(w, "what this machine can generate (%d processors, %s)\n\n", c.Processors, c.Workload())
	row := func(name string, perS, cpu float64) {
		if perS > 0 {
			fmt.Fprintf(w, "  %-26s %14s %12s   %.3f us of CPU an event\n", name, units.FormatRate(perS), units.FormatSize(int64(perS*c.EventBytes))+"/s", cpu)
		}
	}
	row("without a target", c.NullPerS, c.NullCPUUS)
	row("into a discarding server", c.DiscardPerS, c.DiscardCPUUS)
	if path != "" {
		fmt.Fprintf(w, "\nkept in %s; reports of this host cite it\n", path)
	}
}
