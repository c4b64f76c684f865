package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/internal/workload"
	"carronade/load"
	"carronade/units"
)

const calibrateLong = `Measures what this machine can generate: without a target (null://), and into a
discarding stand-in that runs beside it in its own process. The result is kept
for this host and cited in its reports, so that a reader can see how far a run
was from the generator's own limit. It does not affect verdicts or exit codes.`

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

// calibrationEvents is the size of the events of a calibration, in bytes.
const calibrationEvents = 100

func (s *session) calibrateCommand() *cobra.Command {
	var (
		asJSON bool
		span   = 3 * time.Second
	)
	cmd := &cobra.Command{
		Use: "calibrate", Short: "what this machine can generate, kept and cited in reports",
		Long: calibrateLong, Args: command.Args(0, 0, "nothing"),
		RunE: command.Run(func(cmd *cobra.Command, _ []string) error {
			c, err := s.calibrate(cmd.Context(), span)
			if err != nil {
				return err
			}
			path, err := keepCalibration(c)
			if err != nil {
				path = ""
				s.warn(fmt.Sprintf("the calibration could not be saved, so reports will not cite it: %v", err))
			}
			if asJSON {
				return command.WriteJSON(s.out, c)
			}
			c.text(s.out, path)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	cmd.Flags().DurationVar(&span, "for", span, "how long each of the two measurements takes")
	return cmd
}

func (s *session) calibrate(ctx context.Context, span time.Duration) (*calibration, error) {
	if span < 100*time.Millisecond || span > time.Hour {
		return nil, &words{Err: fmt.Errorf("--for: %v is not a valid length for a calibration", span), Hint: "3s is enough on a quiet machine"}
	}
	c := &calibration{Schema: calibrationSchema, Host: hostName(), Processors: load.Processors()}
	c.At, c.EventBytes, c.Version = time.Now().UTC().Truncate(time.Second), calibrationEvents, version()
	var err error
	s.note("to nowhere, for %s ...", units.FormatDuration(span))
	if c.NullPerS, c.NullCPUUS, err = s.fullSpeed(ctx, "null://", span); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(protocols(), func(p protocol) bool { return p.sink != nil && s.kindOf(p) != nil })
	if i < 0 {
		return c, nil // no kind of this program has a sink to measure against
	}
	server := protocols()[i].sink
	sink, err := s.spawn(ctx, ctx, server.args...)
	if err != nil {
		return nil, err
	}
	s.note("into a discarding stand-in beside it, for %s ...", units.FormatDuration(span))
	c.DiscardPerS, c.DiscardCPUUS, err = s.fullSpeed(ctx, server.target(sink.Addr()), span)
	if stopErr := sink.Stop(); err == nil {
		err = stopErr
	}
	return c, err
}

// fullSpeed sends without a limit and returns events/s and CPU in us per event.
func (s *session) fullSpeed(ctx context.Context, to string, span time.Duration) (perS, cpu float64, err error) {
	var d workload.Document
	for _, row := range [][2]string{
		{"target", to}, {"for", span.String()}, {"warmup", min(time.Second, span).String()}, {"size", fmt.Sprint(calibrationEvents)}, {"interval", "200ms"},
	} {
		d.Add(row[0], "the calibration's "+row[0], row[1])
	}
	w, err := workload.Resolve(s.Kinds, &d, nil)
	if err != nil {
		return 0, 0, err
	}
	doc, err := s.execute(ctx, outputs{quiet: true, tasks: []task{{w: w}}, keep: &keeping{}}, 0)
	if err != nil {
		return 0, 0, err
	}
	if ctx.Err() != nil {
		return 0, 0, context.Canceled
	}
	if doc.Totals.EventsPerS == 0 {
		return 0, 0, fmt.Errorf("calibrating against %s: no event was accepted", to)
	}
	return doc.Totals.EventsPerS, doc.Generator.CPUUSPerEvent, nil
}

func (c *calibration) text(w io.Writer, path string) {
	fmt.Fprintf(w, "what this machine can generate (%d processors, events of %s)\n\n", c.Processors, units.FormatSize(int64(c.EventBytes)))
	row := func(name string, perS, cpu float64) {
		fmt.Fprintf(w, "  %-26s %14s %12s   %.3f us of CPU an event\n", name, units.FormatRate(perS), units.FormatSize(int64(perS*c.EventBytes))+"/s", cpu)
	}
	row("without a target", c.NullPerS, c.NullCPUUS)
	row("into a discarding server", c.DiscardPerS, c.DiscardCPUUS)
	if path != "" {
		fmt.Fprintf(w, "\nkept in %s; reports of this host cite it\n", path)
	}
}

// calibrationPath is the file of this host's calibration. Machines may share a home folder, so
// the name contains the host's.
func calibrationPath() (string, error) {
	dir, err := system.DataDir()
	if err != nil {
		return "", fmt.Errorf("finding the user's data folder: %w", err)
	}
	return filepath.Join(dir, "carronade", "calibration", hostName()+".json"), nil
}

// hostName is the host's name, made safe for a file name.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "host"
	}
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
}

func keepCalibration(c *calibration) (string, error) {
	path, err := calibrationPath()
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	return path, command.WriteFile(path, func(w io.Writer) error { return command.WriteJSON(w, c) })
}

// keptCalibration returns this host's calibration, or nil if there is none for its present
// number of processors.
func keptCalibration() *report.Calibration {
	path, err := calibrationPath()
	if err != nil {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	var c calibration
	if json.Unmarshal(data, &c) != nil || c.Schema != calibrationSchema || c.Processors != load.Processors() {
		return nil
	}
	return &c.Calibration
}
