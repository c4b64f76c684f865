package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"carronade/internal/host"
	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/internal/workload"
	"carronade/load"
)

// The target that sends nothing measures how fast this machine generates a workload without a
// system, once for each workload, machine and program.
const (
	generatesTo     = "null://"
	generatesSpan   = 2 * time.Second
	generatesWarmup = 200 * time.Millisecond
	worthMeasuring  = 5 * time.Second // shorter runs use a stored value only
	maxGenerates    = 200             // stored results; the oldest are dropped
)

// batchSettings are the settings that determine how events are put into batches, in addition to
// those of the target that sends nothing.
func batchSettings() []string { return []string{"seed", "batch-events", "max-in-flight", "threads"} }

// addGenerates adds the rate at which this machine generates the workload to the result of a
// run at full speed, if it is known or worth measuring. Call it after the measurement.
func (s *session) addGenerates(ctx context.Context, w *workload.Workload, d *report.Document) {
	_, dead := d.Dead()
	if d.Mode != load.FullSpeed || d.Partial || dead || ctx.Err() != nil || d.Facts["discards"] == true {
		return
	}
	p := entryOf(w.Kind)
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
			s.warn(fmt.Sprintf("could not measure at which rate this machine generates the workload: %v", err))
		}
		return
	}
	g.WorkloadHash = hash
	d.Generates = g
	kept[key] = *g
	_ = keepGenerates(kept) // on failure it is measured again next time
}

// generating returns the same workload for the target that sends nothing.
func (s *session) generating(w *workload.Workload) *workload.Document {
	var d workload.Document
	names := batchSettings()
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

// generate measures that rate.
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
	doc, err := run.Execute(ctx, run.Job{Workload: w, Room: s.room(), Version: version()})
	switch {
	case err != nil:
		return nil, err
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return &report.Generates{EventsPerS: doc.Totals.EventsPerS, BytesPerS: doc.Totals.BytesPerS, At: at}, nil
}

// generatesKey identifies a workload on a machine and a program.
func generatesKey(hash string) string {
	h := sha256.Sum256([]byte(strings.Join([]string{hash, version(), hostName(), host.Describe().String()}, "\n")))
	return hex.EncodeToString(h[:])[:16]
}

// generatesPath is the file of these results, next to this host's calibration.
func generatesPath() (string, error) {
	path, err := calibrationPath()
	if err != nil {
		return "", err
	}
	return strings.TrimSuffix(path, ".json") + ".workloads.json", nil
}

// keptGenerates reads the stored results; a missing or unreadable file has none.
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

// keepGenerates writes the newest results.
func keepGenerates(kept map[string]report.Generates) error {
	newest := slices.SortedFunc(maps.Keys(kept), func(a, b string) int {
		return cmp.Or(kept[b].At.Compare(kept[a].At), cmp.Compare(a, b))
	})
	for _, key := range newest[min(len(newest), maxGenerates):] {
		delete(kept, key)
	}
	path, err := generatesPath()
	if err != nil {
		return err
	}
	return keepJSON(path, kept)
}
