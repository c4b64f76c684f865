package sbom

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"carronade/tools/release/build"
	"carronade/tools/release/notices"
)

var (
	facts = build.Facts{Version: "1.2.3", Commit: "532f904b", Time: time.Date(2026, 11, 23, 22, 0, 0, 0, time.UTC)}
	linux = build.Platform{OS: "linux", Arch: "arm64"}
	info  = debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{
		{Path: "example.org/a", Version: "v1.0.0+incompatible", Sum: "h1:AAEC"},
		{Path: "example.org/old", Version: "v1.0.0", Replace: &debug.Module{Path: "example.org/b", Version: "v2.0.0"}},
	}}
	parts = []notices.Part{
		{Name: "example.org/a", Version: "v1.0.0+incompatible", Licenses: []string{"Apache-2.0", "MIT"}},
		{Name: "example.org/old", Version: "v1.0.0", Licenses: []string{"ISC"}},
		{Name: "example.org/elsewhere", Version: "v1.0.0", Licenses: []string{"ISC"}},
		{Name: notices.Library, Version: "go1.26.8", Licenses: []string{"BSD-3-Clause"}},
		{Name: notices.Embedded + "uplot.js", Version: "v1.6.32", Licenses: []string{"MIT"}},
	}
)

func TestWrite(t *testing.T) {
	program := filepath.Join(t.TempDir(), "carronade")
	if err := os.WriteFile(program, []byte("abc"), 0o644); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	for _, b := range []*bytes.Buffer{&first, &second} {
		if err := Write(b, program, linux, facts, &info, parts); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two documents of the same program differ")
	}
	checkSchema(t, first.Bytes())
	var bom cdx.BOM
	if err := cdx.NewBOMDecoder(&first, cdx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	if bom.SpecVersion != cdx.SpecVersion1_6 || bom.Metadata.Timestamp != "2026-11-23T22:00:00Z" {
		t.Errorf("got the version %v and the time %s", bom.SpecVersion, bom.Metadata.Timestamp)
	}
	if h := *bom.Metadata.Component.Hashes; h[0].Value != "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" {
		t.Errorf("got the hash %v", h)
	}
	var got []string
	for _, c := range *bom.Components {
		ids := []string{}
		for _, l := range *c.Licenses {
			ids = append(ids, l.License.ID)
		}
		got = append(got, c.BOMRef+" "+strings.Join(ids, " "))
	}
	want := []string{
		"pkg:golang/example.org/a@v1.0.0%2Bincompatible Apache-2.0 MIT", "pkg:golang/example.org/b@v2.0.0 ISC",
		"pkg:golang/std@1.26.8 BSD-3-Clause", "embedded:uplot.js MIT",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if refs := *(*bom.Dependencies)[0].Dependencies; len(refs) != 4 {
		t.Errorf("the program depends on %q", refs)
	}
}

func TestWriteWithoutLicense(t *testing.T) {
	program := filepath.Join(t.TempDir(), "carronade")
	if err := os.WriteFile(program, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	err := Write(&bytes.Buffer{}, program, linux, facts, &info, parts[1:])
	if err == nil || !strings.Contains(err.Error(), "example.org/a, whose licence is unknown") {
		t.Errorf("got %v", err)
	}
}

// checkSchema checks a document with CycloneDX's own schema, which is in the library's module.
func checkSchema(t *testing.T, document []byte) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/CycloneDX/cyclonedx-go").Output()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(strings.TrimSpace(string(out)), "schema")
	c := jsonschema.NewCompiler()
	for url, name := range map[string]string{"bom-1.6.schema.json": "", "spdx.schema.json": "", "jsf-0.82.schema.json": "jsf-0.82.schemax.json"} {
		if name == "" {
			name = url
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource("http://cyclonedx.org/schema/"+url, value); err != nil {
			t.Fatal(err)
		}
	}
	schema, err := c.Compile("http://cyclonedx.org/schema/bom-1.6.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(document))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); err != nil {
		t.Errorf("%v\n%s", err, document)
	}
}
