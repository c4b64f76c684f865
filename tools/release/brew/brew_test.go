package brew

import (
	"os"
	"strings"
	"testing"

	"carronade/tools/release/build"
)

func TestFormula(t *testing.T) {
	template, err := os.ReadFile("../../../packaging/homebrew/carronade.rb.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	facts := build.Facts{Version: "1.2.3"}
	archives := map[build.Platform]string{
		{OS: "darwin", Arch: "arm64"}: "carronade_1.2.3_darwin_arm64.tar.gz",
		{OS: "linux", Arch: "amd64"}:  "carronade_1.2.3_linux_amd64.tar.gz",
		{OS: "linux", Arch: "arm64"}:  "carronade_1.2.3_linux_arm64.tar.gz",
	}
	sums := map[string]string{}
	for _, name := range archives {
		sums[name] = strings.Repeat("ab", 32)
	}
	got, err := Formula(string(template), "https://example.org/v1.2.3/", facts, archives, sums)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`version "1.2.3"`, `url "https://example.org/v1.2.3/carronade_1.2.3_darwin_arm64.tar.gz"`,
		`sha256 "` + strings.Repeat("ab", 32) + `"`, "class Carronade < Formula",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	delete(archives, build.Platform{OS: "linux", Arch: "amd64"})
	if _, err := Formula(string(template), "https://example.org", facts, archives, sums); err == nil || !strings.Contains(err.Error(), "@URL_LINUX_AMD64@") {
		t.Errorf("got %v for a platform that is missing", err)
	}
	for _, bad := range []string{"", "http://example.org", "https://", "https://example.org/\"#{x}"} {
		if _, err := Formula(string(template), bad, facts, archives, sums); err == nil || !strings.Contains(err.Error(), "address of downloads") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}
