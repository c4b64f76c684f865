package trace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDocumented: docs/trace.md describes every column.
func TestDocumented(t *testing.T) {
	const path, head = "../../../docs/trace.md", "| column | type | null | meaning |\n|---|---|---|---|\n"
	text := assert.Value(os.ReadFile(path))(t)
	var want strings.Builder
	for _, c := range Columns() {
		null := ""
		if c.Optional {
			null = "may be"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", c.Name, c.Type, null, c.Help)
	}
	before, rest, ok := strings.Cut(string(text), head)
	assert.Must(t, ok, "%s has no table of columns", path)
	got, after, _ := strings.Cut(rest, "\n\n")
	if got+"\n" == want.String() {
		return
	}
	assert.Must(t, testkit.Update(), "%s does not match the columns; run go test ./internal/run/trace -run Documented -update", path)
	assert.OK(t, os.WriteFile(path, []byte(before+head+want.String()+"\n"+after), 0o644))
}
