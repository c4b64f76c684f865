package store

import (
	"fmt"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"carronade/internal/report"
	"carronade/internal/workload"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

const document = "../../docs/reports.md"

// statistic is the part of a help text that says which number of a time a field is.
var statistic = regexp.MustCompile(`(time|delay), (mean|min|max|p[0-9]+)`)

// fieldsTable is the table of Fields in the document. Fields of one kind that differ only in their names, or in the statistic of
// a time, share a row. A help text that points to the row above, such as "of those, the longest", has a row of its own.
func fieldsTable() string {
	type row struct{ kind, help, name string }
	var rows []row
	names := make(map[row][]string)
	for _, f := range Fields() {
		if strings.HasPrefix(f.Name, "system.host.") { // one row for all of them
			continue
		}
		if section := documentedAs(f.Name); section != "" && (f.Kind == KindCount || f.Kind == KindSize) {
			f.Help = section
		}
		r := row{fmt.Sprint(f.Kind), statistic.ReplaceAllString(f.Help, "$1"), ""}
		if strings.HasPrefix(r.help, "of th") && !strings.HasPrefix(r.help, "of the ") {
			r.name = f.Name
		}
		if names[r] == nil {
			rows = append(rows, r)
		}
		names[r] = append(names[r], "`"+f.Name+"`")
		for _, alias := range aliasesOf(f.Name) {
			names[r] = append(names[r], "(`"+alias+"`)")
		}
	}
	var b strings.Builder
	b.WriteString("| field (also called), kind | what it is |\n|---|---|\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "| %s %s | %s |\n", strings.Join(names[r], " "), r.kind, r.help)
	}
	b.WriteString("| `system.host.name` and so on | as `host.`, of the first machine of --system-host |\n")
	return b.String()
}

// documentedAs says where docs/report.md describes a field with the same name, if one place does.
func documentedAs(name string) (section string) {
	for _, s := range []string{"Totals", "Ledger"} {
		of, _ := reflect.TypeFor[report.Document]().FieldByName(s)
		typ := of.Type
		if typ.Kind() == reflect.Pointer {
			typ = typ.Elem()
		}
		for _, f := range reflect.VisibleFields(typ) {
			if tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); tag != name {
				continue
			}
			if section != "" {
				return ""
			}
			section = "as in [`" + strings.ToLower(s) + "`](report.md)"
		}
	}
	return section
}

// aliasesOf lists the aliases of a field, sorted.
func aliasesOf(name string) []string {
	var out []string
	for alias, of := range aliases {
		if of == name {
			out = append(out, alias)
		}
	}
	slices.Sort(out)
	return out
}

// independentTable is the table of independent variables, by target.
func independentTable() string {
	settings := func(table []workload.Setting, kind string) string {
		var out []string
		for _, s := range table {
			if s.Kind == kind && s.Independent && s.Name != "system-flag" {
				out = append(out, s.Name)
			}
		}
		return "`" + strings.Join(out, "` `") + "`"
	}
	var facts []string
	for name := range independent {
		if name != "op" {
			facts = append(facts, name)
		}
	}
	slices.Sort(facts)
	var b strings.Builder
	b.WriteString("| of | independent variables |\n|---|---|\n")
	fmt.Fprintf(&b, "| every workload | %s |\n", settings(workload.Table(nil), ""))
	for _, k := range programKinds {
		fmt.Fprintf(&b, "| %s | %s |\n", k.Name(), settings(workload.Table(k), k.Name()))
	}
	b.WriteString("| the system under test | each flag of `--system-flag` |\n")
	fmt.Fprintf(&b, "| where it ran, and what the target reported | `%s` `target.topic.settings.*` |\n", strings.Join(facts, "` `"))
	return b.String()
}

// TestDocument compares the document's tables with the code; with -update it writes them.
func TestDocument(t *testing.T) {
	data := assert.Value(os.ReadFile(document))(t)
	text := string(data)
	for name, want := range map[string]string{"fields": fieldsTable(), "independent": independentTable()} {
		begin, end := fmt.Sprintf("<!-- %s: made from the code -->\n", name), fmt.Sprintf("<!-- end of %s -->", name)
		before, rest, ok := strings.Cut(text, begin)
		got, after, ok2 := strings.Cut(rest, end)
		assert.Must(t, ok && ok2, "%s has no markers of %q", document, name)
		if testkit.Update() {
			text = before + begin + want + end + after
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: go test ./internal/store -update fixes it (-want +got):\n%s", name, diff)
		}
	}
	if testkit.Update() {
		assert.OK(t, os.WriteFile(document, []byte(text), 0o644))
	}
}
