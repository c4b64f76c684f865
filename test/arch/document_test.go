package arch

import (
	"os"
	"path"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

const document = "../../docs/architecture.md"

// TestSentences checks that the document says of each package what it is for, or says it
// of its folder.
func TestSentences(t *testing.T) {
	data, err := os.ReadFile(document)
	assert.OK(t, err)
	_, rest, _ := strings.Cut(string(data), "## The floor plan\n")
	sentences, _, ok := strings.Cut(rest, "\n## ")
	assert.Must(t, ok, "%s has no floor plan", document)
	for _, r := range Packages {
		if r.Name == "." || strings.ContainsAny(r.Name, "*.") {
			continue
		}
		name := r.Name
		for name != "." && !strings.Contains(sentences, "`"+name+"`") {
			name = path.Dir(name)
		}
		assert.True(t, name != ".", "%s has no sentence about %s", document, r.Name)
	}
}
