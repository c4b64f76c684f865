package judge

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"carronade/internal/layout"
)

// A table that is too wide for a terminal is several, and each says which row is
// which; where there is none it is whole.
func TestCollateFitsItsTerminal(t *testing.T) {
	const variable = "apm-server.tracing.enabled"
	rows := append(runs(1, "a", 3, 50e3, 0.012, 0.02, fields{"flag." + variable: "false"}), runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true", "trusted": false})...)
	rows[3] = runs(2, "b", 3, 60e3, 0.012, 0.02, fields{"flag." + variable: "true"})[0]
	for _, columns := range []int{0, 40, 80, 200} {
		var b bytes.Buffer
		if err := collated(t, rows, variable).Text(&b, layout.Style{ASCII: true}, columns); err != nil {
			t.Fatal(err)
		}
		text := b.String()
		var heads []string
		for line := range strings.Lines(text) {
			line = strings.TrimRight(line, "\n")
			if n := layout.Width(line); columns > 0 && n > max(columns, layout.Columns) {
				t.Errorf("%d of %d columns: %s", n, columns, line)
			}
			if strings.Contains(line, variable[:10]) {
				heads = append(heads, line)
			}
		}
		if narrow := columns == 40 || columns == 80; (len(heads) > 1) != narrow {
			t.Errorf("%d tables in %d columns:\n%s", len(heads), columns, text)
		} else if narrow && slices.ContainsFunc(heads, func(h string) bool { return !strings.HasPrefix(h, variable[:10]) }) {
			t.Errorf("not all tables begin with VAR: %q", heads)
		}
		if !strings.Contains(text, "b2 !2") {
			t.Errorf("it is not said that two of three are not to be trusted:\n%s", text)
		}
	}
}
