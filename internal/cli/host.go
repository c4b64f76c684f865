package cli

import (
	"fmt"
	"io"
	"runtime"
	"strconv"
	"strings"
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
under test, and the result of the last calibration.`,
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
		fmt.Fprintf(w, "%-13s %s\n", name, fmt.Sprintf(format, args...))
	}
	rowIf := func(ok bool, name, format string, args ...any) {
		if ok {
			row(name, format, args...)
		}
	}
	rowIf(h.Name != "", "name", "%s", h.Name)
	row("system", "%s", joined(h.Distribution, h.OS, h.Kernel, h.Arch))
	rowIf(h.Machine != "", "machine", "%s", h.Machine)
	rowIf(h.Container != "", "container", "%s", h.Container)
	rowIf(h.CPU != "", "processor", "%s", h.CPU)
	row("cores", "%d usable%s", h.Cores, topologyText(h))
	rowIf(h.CPULimit > 0, "cpu limit", "%.3g processors", h.CPULimit)
	rowIf(h.Memory > 0, "memory", "%s", units.FormatSize(int64(h.Memory)))
	rowIf(h.MemoryLimit > 0, "memory limit", "%s", units.FormatSize(int64(h.MemoryLimit)))
	for _, m := range h.MemoryModules {
		row("module", "%s", joined(units.FormatSize(int64(m.Bytes)), m.Type, numberOf(m.Speed, "MT/s"), m.Maker))
	}
	for _, d := range h.Disks {
		row("disk "+d.Name, "%s", joined(units.FormatSize(int64(d.Bytes)), d.Kind, d.Model, d.Scheduler))
	}
	for _, a := range h.RAID {
		row("raid "+a.Name, "%s", joined(a.Level, strings.Join(a.Disks, " ")))
	}
	for _, f := range h.FileSystems {
		free := ""
		if f.Bytes > 0 {
			free = units.FormatSize(int64(f.Free)) + " free of " + units.FormatSize(int64(f.Bytes))
		}
		row("files "+f.Mount, "%s", joined(f.Type, f.Device, free))
	}
	for _, i := range h.Network {
		row("network "+i.Name, "%s", joined(numberOf(i.Mbit, "Mbit/s"), "mtu "+strconv.Itoa(i.MTU), i.Driver))
	}
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

// topologyText describes the topology of the processors, if the kernel reports it.
func topologyText(h *system.Host) string {
	if h.Sockets == 0 {
		return ""
	}
	text := fmt.Sprintf("; cores %d, sockets %d", h.PhysicalCores, h.Sockets)
	if h.NUMANodes > 0 {
		text += fmt.Sprintf(", NUMA nodes %d", h.NUMANodes)
	}
	return text
}

// numberOf returns a number with its unit, "" for zero.
func numberOf(n int, unit string) string {
	if n == 0 {
		return ""
	}
	return strconv.Itoa(n) + " " + unit
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
