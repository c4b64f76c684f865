package export

import (
	"bytes"
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
	var whole, line bytes.Buffer
	for _, d := range ds {
		whole.Reset()
		line.Reset()
		err := d.WriteJSON(&whole)
		if err == nil {
			err = json.Compact(&line, whole.Bytes())
		}
		if err != nil {
			return fmt.Errorf("report %s: %w", d.ID, err)
		}
		line.WriteByte('\n')
		if _, err := w.Write(line.Bytes()); err != nil {
			return err
		}
	}
	return nil
}
