package export

import (
	"encoding/json"
	"fmt"
	"io"

	"carronade/internal/report"
)

// writeJSON writes one report as a document, and several as a line each.
func writeJSON(w io.Writer, ds []*report.Document, _ Options) error {
	if len(ds) == 1 {
		return ds[0].WriteJSON(w)
	}
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	for _, d := range ds {
		if err := e.Encode(d); err != nil {
			return fmt.Errorf("report %s: %w", d.ID, err)
		}
	}
	return nil
}
