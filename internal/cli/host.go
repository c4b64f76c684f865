package cli

import (
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/system"
	"carronade/units"
)

// hostCommand shows what reports say about this machine.
func (s *session) hostCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "host", Short: "this machine, as reports describe it",
		Long: `This machine as reports describe it: what a result depends on besides the system
under test, and what this machine generated when it was calibrated.`,
		Args: command.Args(0, 0, "nothing"),
		RunE: command.Run(func(*cobra.Command, []string) error {
			h, c := system.Describe(), keptCalibration()
			if asJSON {
				return command.WriteJSON(s.out, struct {
					system.Host
					Calibration *report.Calibration `json:"calibration"`
				}{h, c})
			}
			hostText(s.out, &h, c)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "as JSON")
	return cmd
}

func hostText(w io.Writer, h *system.Host, c *report.Calibration) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-14s%s\n", name, fmt.Sprintf(format, args...))
	}
	rowIf := func(ok bool, name, format string, args ...any) {
		if ok {
			row(name, format, args...)
		}
	}
	rowIf(h.Name != "", "name", "%s", h.Name)
	row("system", "%s", joined(h.Distribution, h.OS, h.Kernel, h.Arch))
	rowIf(h.CPU != "", "processor", "%s", h.CPU)
	row("cores", "%d usable", h.Cores)
	rowIf(h.CPULimit > 0, "cpu limit", "%.3g processors", h.CPULimit)
	rowIf(h.Memory > 0, "memory", "%s", units.FormatSize(int64(h.Memory)))
	rowIf(h.MemoryLimit > 0, "memory limit", "%s", units.FormatSize(int64(h.MemoryLimit)))
	rowIf(h.Clock != "", "clock", "%s", h.Clock)
	rowIf(h.Governor != "", "governor", "%s", h.Governor)
	rowIf(h.Limits.OpenFiles > 0, "open files", "%d", h.Limits.OpenFiles)
	row("go", "%s", runtime.Version())
	if c == nil {
		row("calibrated", "never; carronade calibrate measures what this machine can generate")
		return
	}
	row("calibrated", "%s: %s to nowhere, %s into a discarding server (%s events)",
		c.At.Format(time.DateOnly), units.FormatRate(c.NullPerS), units.FormatRate(c.DiscardPerS), units.FormatSize(int64(c.EventBytes)))
}

func joined(parts ...string) string {
	out := ""
	for _, p := range parts {
		switch {
		case p == "":
		case out == "":
			out = p
		default:
			out += ", " + p
		}
	}
	return out
}
