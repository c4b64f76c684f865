package cli

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

// Every tool takes the flags that it has in common with the others, and has no flag
// of its own with such a name.
func TestCommonFlags(t *testing.T) {
	for _, tool := range oldTools() {
		t.Run(tool.Name, func(t *testing.T) {
			own, common, err := tool.Split([]string{"--store", "a.db", "--label", "a=b", "--no-store"})
			assert.True(t, err == nil && len(own) == 0 && len(common.Keep) == 3, "%q is left, %+v, %v", own, common, err)
			var help bytes.Buffer
			p := &dropin.Program{Called: tool.Name, Args: []string{"--help"}, In: strings.NewReader(""), Out: &help, Err: &help}
			assert.Value(tool.Main(t.Context(), p))(t)
			for _, name := range []string{"strict", "generation", "report-json", "store", "no-store", "label"} {
				flags := regexp.MustCompile(`(?m)^\s*\[?--?`+name+`\b[^-]`).FindAllString(help.String(), -1)
				assert.True(t, len(flags) == 1, "the help has %d flags --%s:\n%s", len(flags), name, help.String())
			}
		})
	}
}
