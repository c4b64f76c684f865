package reports

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
	for _, tt := range []struct {
		args string
		code int
		says string
	}{
		{"", host.ExitFailed, "needs reports"},
		{"--older-than x", host.ExitFailed, "is not an age"},
		{"--older-than -5m --yes", host.ExitFailed, "is not an age"}, // all reports are younger than in five minutes
		{"--older-than= branch=main --yes", host.ExitFailed, "is not an age"},
		{"last --older-than 1d", host.ExitFailed, "goes with filters"},
		{"--older-than 400d --yes", host.ExitOK, ""},
	} {
		code, words := s.run(append([]string{"delete"}, strings.Fields(tt.args)...)...)
		assert.True(t, code == tt.code && strings.Contains(words, tt.says), "%s: got %d, %q, want %d, %q", tt.args, code, words, tt.code, tt.says)
	}
	s.repeat(2, "main", "bbbb", 9*day, 50e3)
	s.repeat(1, "main", "cccc", 1*day, 50e3)
	code, words := s.run("delete", "--older-than", "4d", "--yes")
	assert.True(t, code == host.ExitOK && strings.Contains(s.notes.String(), "deleted 2 reports: "), "got %d, %q, %q", code, words, s.notes.String())
	for n, want := range map[int]string{5: strings.Join(ids[:5], " "), 7: strings.Join(ids[:4], " ") + " and 3 others"} {
		assert.Equal(t, few(ids[:n]), want, "%d", n)
	}
}
