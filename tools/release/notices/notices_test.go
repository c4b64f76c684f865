package notices

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/tools/release/build"
)

const root = "../../.."

// TestCollect collects those of the real program. Modules that differ by platform are
// found: mousetrap is only imported on Windows, go-landlock and psx only on Linux.
func TestCollect(t *testing.T) {
	parts, err := Collect(t.Context(), root, []build.Platform{{OS: "linux", Arch: "amd64"}, {OS: "windows", Arch: "amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, licence := range map[string]string{
		"github.com/twmb/franz-go/pkg/kmsg":             "BSD-3-Clause",
		"github.com/spf13/cobra":                        "Apache-2.0",
		"github.com/inconshreveable/mousetrap":          "Apache-2.0",
		"github.com/landlock-lsm/go-landlock":           "MIT",
		"kernel.org/pub/linux/libs/security/libcap/psx": "BSD-3-Clause",
		"modernc.org/sqlite":                            "BSD-3-Clause",
		"embedded file uplot.js":                        "MIT",
		"Go standard library":                           "BSD-3-Clause",
	} {
		i := slices.IndexFunc(parts, func(p Part) bool { return p.Name == name })
		if i < 0 {
			t.Errorf("%s is missing", name)
			continue
		}
		if !slices.Contains(parts[i].Licenses, licence) || parts[i].Version == "" {
			t.Errorf("%s: got the version %q and the licences %v, want %s", name, parts[i].Version, parts[i].Licenses, licence)
		}
	}
	for _, tool := range []string{"github.com/google/go-containerregistry", "github.com/chromedp/chromedp", "pgregory.net/rapid"} {
		if slices.ContainsFunc(parts, func(p Part) bool { return p.Name == tool }) {
			t.Errorf("the program contains %s, which is for tests and tools", tool)
		}
	}
	var first, second bytes.Buffer
	if err := Write(&first, parts); err != nil {
		t.Fatal(err)
	}
	again, err := Collect(t.Context(), root, []build.Platform{{OS: "windows", Arch: "amd64"}, {OS: "linux", Arch: "amd64"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := Write(&second, again); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the text depends on the order of the platforms")
	}
	for _, want := range []string{"uplot.js v1.6.32: MIT", "Leon Sorokin", "The Go Authors", "\nmodernc.org/libc: LICENSE\n"} {
		if !strings.Contains(first.String(), want) {
			t.Errorf("the text does not contain %q", want)
		}
	}
}

// TestWithout checks that a module without a licence, and one with a licence that may not be shipped, fail.
func TestWithout(t *testing.T) {
	const all = "copies or substantial portions of the Software.\n"
	restricted := strings.Replace(mit, all, all+"\nThe Software shall be used for Good, not Evil.\n", 1)
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none", map[string]string{"m/README.md": "free"}, "example.org/m v0.0.0-00010101000000-000000000000: no licence text was found"},
		{"unknown", map[string]string{"m/LICENSE": "Do what you think is right."}, "its licence is not a known one"},
		{"not allowed", map[string]string{"m/COPYING": restricted}, "is not among those"},
		{"a script", map[string]string{"m/LICENSE": mit, "x.js": "/*! https://example.org/x (v1) */"}, "X-LICENSE is missing next to it"},
		{"a folder's own", map[string]string{"m/sub/LICENSE": mit}, ""},
		{"allowed", map[string]string{"m/LICENCE.md": mit, "x.js": "/*! https://example.org/x (v1) */", "X-LICENSE": mit}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			files := map[string]string{
				"go.mod":     "module p\n\ngo 1.26\n\nrequire example.org/m v0.0.0-00010101000000-000000000000\n\nreplace example.org/m => ./m\n",
				"main.go":    "package main\n\nimport (\n\t\"embed\"\n\t_ \"example.org/m/sub\"\n)\n\n//go:embed *.js\nvar F embed.FS\n\nfunc main() {}\n",
				"y.js":       "// ours",
				"m/go.mod":   "module example.org/m\n",
				"m/sub/m.go": "package sub\n",
			}
			for name, text := range tt.files {
				files[name] = text
			}
			for name, text := range files {
				path := filepath.Join(dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			parts, err := Collect(t.Context(), dir, []build.Platform{{OS: "linux", Arch: "amd64"}})
			if tt.want != "" {
				if err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("got %v, want %s", err, tt.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if i := slices.IndexFunc(parts, func(p Part) bool { return p.Name == "example.org/m" }); i < 0 || !slices.Equal(parts[i].Licenses, []string{"MIT"}) {
				t.Errorf("got %v", parts)
			}
		})
	}
}

const mit = `MIT License

Copyright (c) 2026 Example

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
`

// TestChosen: of a text that offers a choice, what is not allowed is not chosen; without an offer, or if nothing of it
// is allowed, it stays.
func TestChosen(t *testing.T) {
	for _, tt := range []struct {
		text  string
		found []string
		want  string
	}{
		{"/* SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only */", []string{"BSD-3-Clause", "GPL-2.0"}, "BSD-3-Clause"},
		{"SPDX-License-Identifier: BSD-3-Clause OR GPL-2.0-only", []string{"GPL-2.0"}, "BSD-3-Clause"},
		{"SPDX-License-Identifier: BSD-3-Clause AND GPL-2.0-only", []string{"BSD-3-Clause", "GPL-2.0"}, "BSD-3-Clause GPL-2.0"},
		{"SPDX-License-Identifier: LGPL-3.0-only OR GPL-2.0-only", []string{"GPL-2.0", "MIT"}, "GPL-2.0 MIT"},
		{"SPDX-License-Identifier: MIT OR Apache-2.0", []string{"GPL-2.0", "MIT"}, "GPL-2.0 MIT"},
		{"none", []string{"GPL-2.0"}, "GPL-2.0"},
	} {
		if got := strings.Join(chosen(tt.text, tt.found), " "); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.text, got, tt.want)
		}
	}
}
