package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"carronade/internal/command"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/system"
	"carronade/internal/workload"
	"carronade/load"
)

// What this machine generates of a workload without a system is measured by the
// target that sends nothing, once for each workload, machine and program.
const (
	generatesTo     = "null://"
	generatesSpan   = 2 * time.Second
	generatesWarmup = 200 * time.Millisecond
	worthMeasuring  = 5 * time.Second // shorter runs have it only where it is known
	mostGenerates   = 200             // that are kept; the oldest go
)

// loadOfEvents are the settings of the load that say how events are made into
// batches. Those of the target that sends nothing come to them.
func loadOfEvents() []string { return []string{"seed", "batch-events", "max-in-flight", "threads"} }

// beside puts what this machine generates beside the result of a run at full
// speed, where that is known or worth measuring. It is called when everything is
// measured.
func (s *session) beside(ctx context.Context, w *workload.Workload, d *report.Document) {
	_, dead := d.Dead()
	if d.Mode != load.FullSpeed || d.Partial || dead || ctx.Err() != nil || d.Facts["discards"] == true {
		return
	}
	p := protocolOf(w.Kind)
	if p == nil || p.prepares == nil || !p.prepares(w) {
		return
	}
	doc := s.generating(w)
	hash := hashOf(doc)
	kept := keptGenerates()
	key := generatesKey(hash)
	if g, ok := kept[key]; ok {
		g.Cached, g.WorkloadHash = true, hash
		d.Generates = &g
		return
	}
	if d.Totals.ElapsedS < worthMeasuring.Seconds() {
		return
	}
	g, err := s.generate(ctx, doc)
	if err != nil {
		if ctx.Err() == nil {
			s.warn(fmt.Sprintf("what this machine generates of the workload could not be measured: %v", err))
		}
		return
	}
	g.WorkloadHash = hash
	d.Generates = g
	kept[key] = *g
	_ = keepGenerates(kept) // else it is measured again
}

// generating is the workload without a system: what is made is the same.
func (s *session) generating(w *workload.Workload) *workload.Document {
	var d workload.Document
	names := loadOfEvents()
	for _, k := range s.Kinds {
		if slices.Contains(k.Schemes(), strings.TrimSuffix(generatesTo, "://")) {
			for _, o := range k.Options() {
				names = append(names, o.Name)
			}
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if w.Has(name) {
			d.Add(name, "the workload's "+name, w.List(name)...)
		}
	}
	return &d
}

// hashOf is the hash of a workload's settings.
func hashOf(d *workload.Document) string {
	h := sha256.New()
	for _, e := range d.Entries {
		fmt.Fprintf(h, "%q=%q\n", e.Name, e.Values)
	}
	return hex.EncodeToString(h.Sum(nil))[:12]
}

// generate measures it.
func (s *session) generate(ctx context.Context, events *workload.Document) (*report.Generates, error) {
	d := workload.Document{Entries: slices.Clone(events.Entries)}
	for _, row := range [][2]string{
		{"target", generatesTo}, {"for", generatesSpan.String()}, {"warmup", generatesWarmup.String()}, {"interval", "200ms"},
	} {
		d.Add(row[0], "the measurement's "+row[0], row[1])
	}
	w, err := workload.Resolve(s.Kinds, &d, nil)
	if err != nil {
		return nil, err
	}
	at := time.Now().UTC().Truncate(time.Second)
	doc, err := run.Execute(ctx, run.Job{Workload: w, Version: version()})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return &report.Generates{EventsPerS: doc.Totals.EventsPerS, BytesPerS: doc.Totals.BytesPerS, At: at}, nil
}

// generatesKey tells apart what must not be taken for each other: workloads,
// programs and machines.
func generatesKey(hash string) string {
	h := sha256.Sum256([]byte(strings.Join([]string{hash, version(), hostName(), system.Describe().String()}, "\n")))
	return hex.EncodeToString(h[:])[:16]
}

// generatesPath is where they are kept, beside this host's calibration.
func generatesPath() (string, error) {
	path, err := calibrationPath()
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(path, ".json") + ".workloads.json", nil
}

// keptGenerates reads them. Where there are none, or none that can be read, there
// are none.
func keptGenerates() map[string]report.Generates {
	kept := map[string]report.Generates{}
	path, err := generatesPath()
	if err != nil {
		return kept
	}
	data, err := os.ReadFile(path)
	if err != nil || json.Unmarshal(data, &kept) != nil || kept == nil {
		return map[string]report.Generates{}
	}
	return kept
}

// keepGenerates writes them, the newest.
func keepGenerates(kept map[string]report.Generates) error {
	newest := slices.SortedFunc(maps.Keys(kept), func(a, b string) int {
		return cmp.Or(kept[b].At.Compare(kept[a].At), cmp.Compare(a, b))
	})
	for _, key := range newest[min(len(newest), mostGenerates):] {
		delete(kept, key)
	}
	path, err := generatesPath()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return command.WriteFile(path, func(w io.Writer) error { return command.WriteJSON(w, kept) })
}
