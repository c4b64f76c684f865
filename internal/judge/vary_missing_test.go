package judge

import (
	"bytes"
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

// Cells that exist are shown, whatever cells are missing, in all forms; and those that are missing are
// named.
func TestVaryShowsWhatExists(t *testing.T) {
	d := twoByTwo(t)
	rows := experiment(d, 2, slower)
	for i := range rows {
		if cell, _, _ := CellOf(&rows[i]); cell == 1 || cell == 2 {
			untrust(&rows[i])
		}
	}
	v := assert.Value(Vary(rows, VaryOptions{Series: "abc", Design: d, Rounds: 2}))(t)
	assert.True(t, v.Best == nil && len(v.Numbers) >= 2, "got %+v", v)
	for i := range v.Cells {
		c := &v.Cells[i]
		missing := i == 1 || i == 2
		for _, n := range v.Numbers {
			_, ok := c.Means[n.Field]
			assert.True(t, ok != missing, "cell %d: %s is there: %t", c.Cell, n.Field, ok)
		}
	}
	var text, markdown, csv bytes.Buffer
	assert.OK(t, v.Text(&text, layout.Style{}))
	assert.OK(t, v.Markdown(&markdown))
	assert.OK(t, v.CSV(&csv)) // has a line for each effect
	full := v.Numbers[0].value(&v.Cells[0])
	for form, got := range map[string]string{"text": text.String(), "markdown": markdown.String()} {
		words := strings.Join(strings.Fields(got), " ")
		if !strings.Contains(words, full) || !strings.Contains(words, "have no run that counts") || strings.Contains(words, "noise") || !strings.Contains(words, "4 repetitions without a run that counts") {
			t.Errorf("%s:\n%s", form, got)
		}
	}
	assert.Equal(t, strings.Count(csv.String(), "\n"), 1, "lines of CSV")
}
