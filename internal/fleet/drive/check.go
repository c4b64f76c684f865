package drive

import (
	"errors"
	"fmt"
	"slices"

	"carronade/internal/workload"
)

// Check returns why a workload cannot run on several machines, of which one may read what the
// others send; nil if it can.
func Check(w *workload.Workload, reader string) error {
	reads := w.Verify() || w.Op == workload.RoundTrip
	scheduled := false
	if p, err := w.Plan(); err == nil && w.Op != workload.Consume {
		scheduled = p.Schedule != nil
	}
	switch {
	case reads && !slices.Contains(w.Kind.Ops(), workload.Consume):
		return fmt.Errorf("another machine cannot read the events of %s: a fleet cannot verify them", w.Kind.Name())
	case reads && len(w.Parts()) > 0:
		return errors.New("a fleet cannot verify a workload of several parts")
	case reads && reader == "":
		return errors.New("one agent has to read what the others send: give --fleet-reader NAME")
	case reader != "" && !reads:
		return errors.New("--fleet-reader reads what the others send: it needs --verify or --op roundtrip")
	case w.Op == workload.RoundTrip && !scheduled:
		return errors.New("a round trip on several machines needs --rate: a caller cannot wait for what another machine reads")
	case w.Trace() != "":
		return errors.New("--trace keeps what this program sent: agents write no trace")
	case w.TakesMarks():
		return errors.New("scores of faults need what this program sent: a fleet takes no marks")
	}
	return nil
}
