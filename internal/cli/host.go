package cli

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/units"
)

// hostCommand shows what reports say about this machine.
func (s *session) hostCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "host", Short: "this machine, as reports describe it",
		Long: `This machine as reports describe it: what a result depends on besides the system
under test, and the result of the last calibration.`,
		Args: cmdutil.Args(0, 0, "nothing"),
		RunE: cmdutil.Run(func(*cobra.Command, []string) error {
			h, kept := host.Describe(), keptCalibrations()
			if asJSON {
				out := struct {
					host.Host
					Calibration  *report.Calibration  `json:"calibration"` // the default one, or else the newest
					Calibrations []report.Calibration `json:"calibrations,omitempty"`
				}{Host: h}
				for i := range kept {
					out.Calibrations = append(out.Calibrations, kept[i].Calibration)
				}
				if len(kept) > 0 {
					out.Calibration = &kept[0].Calibration
				}
				return cmdutil.WriteJSON(s.out, out)
			}
			hostText(s.out, &h, kept)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func hostText(w io.Writer, h *host.Host, kept []calibration) {
	row := func(name, text string) { fmt.Fprintf(w, "%-13s %s\n", name, text) }
	for _, p := range h.Properties() {
		row(p.Name, p.Text)
	}
	row("go", runtime.Version())
	if len(kept) == 0 {
		row("calibrated", "never; carronade calibrate measures what this machine can generate")
	}
	for i := range kept {
		c := &kept[i]
		var rates []string
		if c.NullPerS > 0 {
			rates = append(rates, units.FormatRate(c.NullPerS)+" to nowhere")
		}
		if c.DiscardPerS > 0 {
			rates = append(rates, units.FormatRate(c.DiscardPerS)+" into a discarding server")
		}
		row("calibrated", fmt.Sprintf("%s: %s (%s)", c.At.Format(time.DateOnly), joined(rates...), c.Workload()))
	}
}
