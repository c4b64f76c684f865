package command

import (
	"strings"
	"testing"

	"carronade/internal/host"
	"carronade/test/testkit/assert"
)

// A deletion names what it deleted, as long as that is readable.
func TestDeletedNames(t *testing.T) {
	s := newTestStore(t)
	ids := s.repeat(7, "main", "aaaa", 3*day, 50e3)
	for _, tt := range []struct {
		args []string
		want string
	}{
		{ids[:1], "deleted 1 report: " + ids[0] + "\n"},
		{[]string{"branch=main", "--yes"}, "and 2 others\n"},
	} {
		if code, words := s.run(append([]string{"delete"}, tt.args...)...); code != host.ExitOK || !strings.Contains(s.notes.String(), tt.want) {
			t.Errorf("%s: got %d, %q, %q, want %q", tt.args, code, words, s.notes.String(), tt.want)
		}
	}
	for n, want := range map[int]string{5: strings.Join(ids[:5], " "), 7: strings.Join(ids[:4], " ") + " and 3 others"} {
		assert.Equal(t, few(ids[:n]), want, "%d", n)
	}
}
