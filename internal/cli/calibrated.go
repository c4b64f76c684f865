package cli

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/load"
)

// calibrationPath is the file of this host's calibration. Machines may share a home folder, so
// the name contains the host's.
func calibrationPath() (string, error) {
	dir, err := host.DataDir()
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
	return safeName(name)
}

// safeName is a text without what a file name cannot contain.
func safeName(name string) string {
	return strings.Map(func(r rune) rune {
		if strings.ContainsRune(`/\:*?"<>|`, r) || r < ' ' {
			return '_'
		}
		return r
	}, name)
}

// isDefault reports whether a calibration was made without settings of its own.
func (c *calibration) isDefault() bool {
	return (c.Target == firstSink() || c.Target == "") && c.Server == "" && c.EventBytes == calibrationEvents && c.Clients <= calibrationClients
}

// path is the file of this calibration; each workload has its own.
func (c *calibration) path() (string, error) {
	path, err := calibrationPath()
	if err != nil || c.isDefault() {
		return path, err
	}
	name := fmt.Sprintf("%s-%.0f-%d", c.Target, c.EventBytes, c.Clients)
	if c.Server != "" {
		name += "-" + safeName(c.Server)
	}
	return strings.TrimSuffix(path, ".json") + "." + name + ".json", nil
}

func keepCalibration(c *calibration) (string, error) {
	path, err := c.path()
	if err != nil {
		return "", err
	}
	return path, keepJSON(path, c)
}

// keepJSON keeps a document for this user.
func keepJSON(path string, v any) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	var b bytes.Buffer
	if err := cmdutil.WriteJSON(&b, v); err != nil {
		return err
	}
	return host.ReplaceFile(path, b.Bytes())
}

// keptCalibrations returns this host's calibrations for its present number of processors, the
// default first, then the newest.
func keptCalibrations() []calibration {
	path, err := calibrationPath()
	if err != nil {
		return nil
	}
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		return nil
	}
	var out []calibration
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), strings.TrimSuffix(filepath.Base(path), "json")) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(filepath.Dir(path), e.Name()))
		var c calibration
		if err == nil && json.Unmarshal(data, &c) == nil && c.Schema == calibrationSchema && c.Host == hostName() && c.Processors == load.Processors() {
			out = append(out, c)
		}
	}
	slices.SortStableFunc(out, func(a, b calibration) int {
		if a.isDefault() != b.isDefault() {
			return map[bool]int{true: -1, false: 1}[a.isDefault()]
		}
		return b.At.Compare(a.At)
	})
	return out
}

// calibrationFor returns the calibration that is closest to a run of w whose events have that
// size on average; nil if there is none. If it was measured with another workload, it says how to
// measure this one.
func (s *session) calibrationFor(w *workload.Workload, bytes float64) *report.Calibration {
	kept := keptCalibrations()
	if len(kept) == 0 {
		return nil
	}
	kind, clients := w.Kind.Name(), clientsOf(w)
	far := func(c *calibration) []float64 {
		out := []float64{0, 0, 0}
		if !sameKind(c, kind) {
			out[0] = 1
		}
		out[1] = distance(float64(max(c.Clients, 1)), clients)
		out[2] = distance(c.EventBytes, bytes)
		return out
	}
	best := slices.MinFunc(kept, func(a, b calibration) int { return slices.Compare(far(&a), far(&b)) })
	out := best.Calibration
	if d := far(&best); d[0] > 0 || d[1] > 0 || d[2] > nearly {
		out.Instead = s.calibrateCommandFor(w)
	}
	return &out
}

// nearly is the distance of sizes within which a calibration is taken for the same workload: a
// quarter.
var nearly = math.Log(1.25)

// distance is how many times, as a logarithm, two numbers differ; 0 if one is not known.
func distance(a, b float64) float64 {
	if a <= 0 || b <= 0 {
		return 0
	}
	return math.Abs(math.Log(a / b))
}

// sameKind reports whether a calibration is of a kind of target. Those of older programs have
// none: they were made with the first that can be calibrated.
func sameKind(c *calibration, kind string) bool {
	return cmp.Or(c.Target, firstSink()) == kind || c.NullPerS > 0 && strings.HasPrefix(generatesTo, kind+":")
}

// clientsOf is a workload's number of clients; 0 if it is not known.
func clientsOf(w *workload.Workload) float64 {
	n, err := strconv.Atoi(w.String("clients"))
	if err != nil {
		return 0
	}
	return float64(n)
}

// calibrateCommandFor is the command that calibrates with a workload; "" for a kind that has no
// stand-in to calibrate with.
func (s *session) calibrateCommandFor(w *workload.Workload) string {
	p := entryOf(w.Kind)
	if p == nil || p.sink == nil && p.kind+"://" != generatesTo {
		return ""
	}
	text := "carronade calibrate --target " + p.kind
	if w.Has("size") && w.Given("size") {
		text += " --size " + w.String("size")
	}
	if w.Has("clients") && w.Given("clients") {
		text += " --clients " + w.String("clients")
	}
	return text
}
