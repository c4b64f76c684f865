package cli

import (
	"bytes"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

// wide finds the lines of a page that a terminal of 80 columns would break. It
// skips the original lines of old tools and of Go's flag package.
func wide(t *testing.T, of, page string) {
	t.Helper()
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "    \t") || strings.HasPrefix(line, "This tool measures end-to-end latency in Kafka") {
			continue
		}
		n := utf8.RuneCountInString(strings.TrimRight(line, "\n"))
		assert.True(t, n <= 80, "%s: %d columns: %s", of, n, line)
	}
}

// The help of every command, subject and old tool fits a terminal of 80 columns.
func TestHelpWidth(t *testing.T) {
	var out bytes.Buffer
	s := &session{Program: &Program{Kinds: Kinds(), Out: &out, Err: io.Discard}, out: &stdout{w: &out}}
	pages := 0
	var walk func(*cobra.Command)
	walk = func(cmd *cobra.Command) {
		out.Reset()
		cmd.SetOut(&out)
		s.help(cmd, nil)
		wide(t, cmd.CommandPath(), out.String())
		pages++
		if cmd.Annotations[settingsPage] != "" {
			out.Reset()
			for _, k := range Kinds() {
				s.help(cmd, []string{k.Schemes()[0] + "://h"})
			}
			s.helpAll = true
			s.help(cmd, nil)
			s.helpAll = false
			wide(t, cmd.CommandPath()+" --help-all", out.String())
		}
		for _, c := range cmd.Commands() {
			if c.Name() == "completion" {
				continue // its pages are cobra's
			}
			walk(c)
		}
	}
	walk(s.root())
	assert.True(t, pages >= 30, "%d pages of help: where are the commands?", pages)
	for _, sub := range subjects() {
		wide(t, "help "+sub.name, sub.text(s))
	}
	for _, tool := range oldTools() {
		var said bytes.Buffer
		for _, flag := range []string{"--help", "-help"} {
			p := &dropin.Program{Called: tool.Name, Args: []string{flag}, In: strings.NewReader(""), Out: &said, Err: &said}
			if _, err := tool.Main(t.Context(), p); err == nil && said.Len() > 0 {
				break
			}
			said.Reset()
		}
		assert.True(t, said.Len() != 0, "%s: no help", tool.Name)
		wide(t, "as "+tool.Name, said.String())
	}
}
