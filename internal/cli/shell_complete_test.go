package cli

import (
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestCompletionsOfALine: what a session of the shell offers for carronade's own commands.
func TestCompletionsOfALine(t *testing.T) {
	s := &session{Program: &Program{Kinds: Kinds()}}
	for _, tt := range []struct {
		line string
		want []string // those that begin with the last word
	}{
		{"compa", []string{"compare"}},
		{"report ex", []string{"export"}},
		{"report show --js", []string{"--json"}},
		{"report show ", nil}, // the store is not opened
		{"report export last --as markd", []string{"markdown"}},
		{"run nul", []string{"null://"}},
		{"run null:// n", nil},
		{"run null:// --compression zs", []string{"zstd"}},
		{"run null:// --compression=zs", []string{"--compression=zstd"}},
		{"run null:// --rate ", nil},
		{"as hey", []string{"hey-apm"}},
		{"as hey-apm -", nil},
		{"apm switch -cm ", nil},
		{"nonsense ", nil},
	} {
		t.Run(tt.line, func(t *testing.T) {
			words := strings.Split(tt.line, " ")
			got := s.completions(words)
			got = slices.DeleteFunc(got, func(c string) bool { return !strings.HasPrefix(c, words[len(words)-1]) })
			assert.True(t, slices.Equal(got, tt.want), "got %q, want %q", got, tt.want)
		})
	}
}
