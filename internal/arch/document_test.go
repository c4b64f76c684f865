package arch

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the table of packages into docs/architecture.md")

const (
	document  = "../../docs/architecture.md"
	tableHead = "| package | may import |\n|---|---|\n"
)

// tableText is the table of packages as the document shows it.
func tableText() string {
	var b strings.Builder
	b.WriteString(tableHead)
	for _, r := range Packages {
		name := r.Name
		if name == "." {
			name = "main.go"
		}
		may := "nothing of ours"
		if len(r.May) > 0 {
			may = "`" + strings.Join(r.May, "` `") + "`"
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", name, may)
	}
	return b.String()
}

// TestDocument compares the document's table with the one that is enforced.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), tableHead)
	if !ok {
		t.Fatalf("%s has no table of packages", document)
	}
	end := strings.Index(rest, "\n\n") + 1
	if end == 0 {
		t.Fatal("the table has no end")
	}
	got, want := tableHead+rest[:end], tableText()
	if *update {
		if err := os.WriteFile(document, []byte(before+want+rest[end:]), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the table differs from internal/arch/table.go; go test ./internal/arch -update updates it (-document +table):\n%s", diff)
	}
}
