package arch

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
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

// Pictures in documents exist and are small. SVG pictures are valid XML without
// scripts and references.
func TestPicturesOfDocuments(t *testing.T) {
	const limit = 100 << 10
	image := regexp.MustCompile(`!\[([^\]]*)\]\(([^)\s]+)\)`)
	texts, err := filepath.Glob("../../docs/*.md")
	assert.OK(t, err)
	found := 0
	for _, path := range append(texts, "../../README.md") {
		text, err := os.ReadFile(path)
		assert.OK(t, err)
		for _, m := range image.FindAllStringSubmatch(string(text), -1) {
			found++
			if strings.TrimSpace(m[1]) == "" {
				t.Errorf("%s: %s has no alternative text", path, m[2])
			}
			data, err := os.ReadFile(filepath.Join(filepath.Dir(path), m[2]))
			if err != nil {
				t.Errorf("%s: %v", path, err)
				continue
			}
			if len(data) > limit {
				t.Errorf("%s: %s has %d bytes, want at most %d", path, m[2], len(data), limit)
			}
			if filepath.Ext(m[2]) != ".svg" {
				continue
			}
			d := xml.NewDecoder(strings.NewReader(string(data)))
			for {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Errorf("%s: %v", m[2], err)
					break
				}
				if e, ok := token.(xml.StartElement); ok {
					for _, a := range e.Attr {
						if a.Name.Local == "href" || e.Name.Local == "script" {
							t.Errorf("%s: %s has a reference or a script: %s", m[2], e.Name.Local, a.Value)
						}
					}
				}
			}
		}
	}
	assert.True(t, found != 0, "no document contains a picture")
}
