package cli

import (
	"strings"
	"testing"

	"carronade/internal/report"
	"carronade/internal/verdict/find"
)

// The command that closes an open answer has its rate as people write it.
func TestFindAgainCommand(t *testing.T) {
	for _, tt := range []struct {
		holds, fails float64
		want         string
	}{
		{20_000, 0, " --from 20k/s"},
		{1_000_000, 0, " --from 1M/s"},
		{12_345.678, 0, " --from 12350/s"},
		{0, 3, " --from 1.5/s"},
	} {
		f := &searching{again: "abcdefgh"}
		d := &report.Document{Target: "null://", Search: &report.Search{Answer: &find.Answer{Holds: tt.holds, Fails: tt.fails}}}
		rows := f.notKept(d)
		if last := rows[len(rows)-1]; last.Name != "to decide" || !strings.HasSuffix(last.Text, tt.want) {
			t.Errorf("holds %v, fails %v: got %+v, want a command that ends with %q", tt.holds, tt.fails, last, tt.want)
		}
	}
}
