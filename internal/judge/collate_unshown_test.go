package judge

import (
	"bytes"
	"testing"

	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

// The JSON of a collation has the mean service time, which the shell's table shows; the table of collate has percentiles.
func TestCollateMeanServiceTime(t *testing.T) {
	rows := append(runs(1, "a", 2, 50e3, 0.012, 0.02, fields{"flag.x": "1", "service_mean": 0.08554}), runs(2, "b", 2, 50e3, 0.012, 0.02, fields{"flag.x": "2", "service_mean": 0.1})...)
	c := collated(t, rows, "x")
	assert.Equal(t, c.Groups[0].Rows[0].Cells["service_mean"].Median, 0.08554, "mean service time")
	var b bytes.Buffer
	assert.OK(t, c.Text(&b, layout.Style{}, 0))
	assert.True(t, !bytes.Contains(b.Bytes(), []byte("85.5")), "the table has it:\n%s", b.String())
}
