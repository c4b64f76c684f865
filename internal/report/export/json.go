package export

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"carronade/internal/report"
)

// writeJSON writes one report as a document, and several as one line each.
func writeJSON(w io.Writer, rs Reports, _ Options) error {
	var whole, line bytes.Buffer
	return rs.each(func(_ int, d *report.Document) error {
		if rs.N == 1 {
			return d.WriteJSON(w)
		}
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
		_, err = w.Write(line.Bytes())
		return err
	})
}
