package trace

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"carronade/internal/testkit"
)

// TestDocumented: docs/trace.md describes every column.
func TestDocumented(t *testing.T) {
	const path, head = "../../docs/trace.md", "| column | type | null | meaning |\n|---|---|---|---|\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, c := range Columns() {
		null := ""
		if c.Optional {
			null = "may be"
		}
		fmt.Fprintf(&want, "| `%s` | %s | %s | %s |\n", c.Name, c.Type, null, c.Help)
	}
	before, rest, ok := strings.Cut(string(text), head)
	if !ok {
		t.Fatalf("%s has no table of columns", path)
	}
	got, after, _ := strings.Cut(rest, "\n\n")
	if got+"\n" == want.String() {
		return
	}
	if !testkit.Update() {
		t.Fatalf("%s does not match the columns; run go test ./internal/trace -run Documented -update", path)
	}
	if err := os.WriteFile(path, []byte(before+head+want.String()+"\n"+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
