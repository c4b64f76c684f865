// Package notices collects the licence texts and notices of everything that the shipped
// program contains: Go's standard library, the modules, and the scripts and fonts of
// others that are embedded.
//
// Its invariant: a part without a licence text that is known and allowed is an error, so
// a list that was written is complete.
package notices

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/google/licensecheck"

	"carronade/tools/release/build"
)

// Names of parts that are not modules.
const (
	Library  = "Go standard library"
	Embedded = "embedded file " // and the file's name
)

// A Part is something of others that the program contains.
type Part struct {
	Name     string // a module's path, or the name of an embedded file
	Version  string // "" if it is not known
	Licenses []string
	Texts    []Text
}

// A Text is one file of a part.
type Text struct{ Name, Text string }

// allowed are the licences, by their SPDX identifiers, whose conditions these notices
// and the source code of the modules meet.
var allowed = []string{"Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "blessing", "CC0-1.0", "ISC", "MIT", "MIT-0", "MPL-2.0", "Unlicense", "Zlib"}

// grant is a promise about patents next to a licence, not a licence.
const grant = "GooglePatentsFile"

// recognised is the share of a text, in percent, that must be a known licence.
const recognised = 75

type pack struct {
	ImportPath string
	Dir        string
	Standard   bool
	EmbedFiles []string
	Module     *struct {
		Path, Version, Dir string
		Main               bool
		Replace            *struct{ Path, Version string }
	}
}

// Collect returns the parts of the program of the module in root, on all platforms
// together, by their names. Only the program's own imports count, not those of tests and
// tools.
func Collect(ctx context.Context, root string, platforms []build.Platform) ([]Part, error) {
	dirs := map[string]map[string]bool{} // folders with licences, by modules
	parts := map[string]*Part{}
	var own []pack
	for _, p := range platforms {
		packs, err := list(ctx, root, p)
		if err != nil {
			return nil, err
		}
		for _, k := range packs {
			switch {
			case k.Standard || k.Module == nil:
			case k.Module.Main:
				own = append(own, k)
			default:
				name := k.Module.Path
				if parts[name] == nil {
					parts[name] = &Part{Name: name, Version: k.Module.Version}
					dirs[name] = map[string]bool{}
				}
				if k.Module.Dir == "" || !within(k.Module.Dir, k.Dir) {
					return nil, fmt.Errorf("module %s: its folder is unknown; go mod download gets it", name)
				}
				for d := k.Dir; ; d = filepath.Dir(d) {
					dirs[name][d] = true
					if d == k.Module.Dir {
						break
					}
				}
			}
		}
	}
	all := []Part{}
	for name, part := range parts {
		for _, dir := range slices.Sorted(maps.Keys(dirs[name])) {
			if err := part.read(dir); err != nil {
				return nil, err
			}
		}
		all = append(all, *part)
	}
	embedded, err := bundled(own)
	if err != nil {
		return nil, err
	}
	all = append(all, embedded...)
	library, err := standard(ctx, root)
	if err != nil {
		return nil, err
	}
	all = append(all, library)
	slices.SortFunc(all, func(a, b Part) int { return strings.Compare(a.Name, b.Name) })
	var wrong []error
	for i := range all {
		if err := all[i].classify(); err != nil {
			wrong = append(wrong, err)
		}
	}
	return all, errors.Join(wrong...)
}

// list runs go list for the packages of the program.
func list(ctx context.Context, root string, p build.Platform) (packs []pack, err error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-deps", "-json=ImportPath,Dir,Standard,EmbedFiles,Module", ".")
	cmd.Dir, cmd.Env = root, p.Env()
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := build.Run(cmd); err != nil {
		return nil, err
	}
	for d := json.NewDecoder(&out); ; {
		var k pack
		switch err := d.Decode(&k); {
		case errors.Is(err, io.EOF):
			return packs, nil
		case err != nil:
			return nil, fmt.Errorf("go list: %w", err)
		}
		packs = append(packs, k)
	}
}

func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// read adds the texts of a folder, without those that the part already has.
func (p *Part) read(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.IsDir() || !isLicense(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		t := Text{e.Name(), plain(text)}
		if !slices.ContainsFunc(p.Texts, func(o Text) bool { return o.Text == t.Text }) {
			p.Texts = append(p.Texts, t)
		}
	}
	return nil
}

// isLicense reports whether a file's name says that it is a licence or a notice:
// LICENSE.md, NOTICE, SQLITE-LICENSE.
func isLicense(name string) bool {
	name = strings.ToLower(name)
	switch filepath.Ext(name) {
	case ".go", ".s", ".c", ".h", ".py", ".sh", ".tmpl", ".json", ".yml", ".yaml":
		return false
	}
	stem := strings.TrimSuffix(strings.TrimSuffix(name, ".txt"), ".md")
	for _, word := range []string{"license", "licence", "copying", "copyright", "notice", "patents", "unlicense"} {
		if strings.HasPrefix(name, word) || strings.HasSuffix(stem, "-"+word) || strings.HasSuffix(stem, "."+word) {
			return true
		}
	}
	return false
}

// plain has Unix line ends, and no space around the text.
func plain(text []byte) string {
	return strings.Trim(strings.ReplaceAll(strings.ToValidUTF8(string(text), "?"), "\r\n", "\n"), "\n \t\ufeff")
}

// bundled returns the files of others among the embedded ones. Scripts and styles of
// others are minified and begin with a comment that must be kept, or have their licence
// next to them: uplot.js and UPLOT-LICENSE.
func bundled(own []pack) (parts []Part, err error) {
	seen := map[string]bool{}
	for _, k := range own {
		for _, name := range k.EmbedFiles {
			path := filepath.Join(k.Dir, filepath.FromSlash(name))
			if seen[path] {
				continue
			}
			seen[path] = true
			head, err := start(path)
			if err != nil {
				return nil, err
			}
			base := filepath.Base(name)
			stem := strings.TrimSuffix(base, filepath.Ext(base))
			license := filepath.Join(filepath.Dir(path), strings.ToUpper(stem)+"-LICENSE")
			text, err := os.ReadFile(license)
			switch {
			case err == nil && path != license && !isLicense(base):
				parts = append(parts, Part{Name: Embedded + base, Version: version(head), Texts: []Text{{filepath.Base(license), plain(text)}}})
			case err != nil && strings.HasPrefix(head, "/*!"):
				return nil, fmt.Errorf("%s begins with a comment of others' work, and %s is missing next to it", path, filepath.Base(license))
			}
		}
	}
	return parts, nil
}

// start is the first line of a file, as far as it is short.
func start(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 200)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, _, _ := strings.Cut(string(head[:n]), "\n")
	return line, nil
}

// version finds "(v1.6.32)" in a comment.
func version(head string) string {
	if _, rest, ok := strings.Cut(head, "(v"); ok && strings.HasPrefix(head, "/*!") {
		if v, _, ok := strings.Cut(rest, ")"); ok {
			return "v" + v
		}
	}
	return ""
}

func standard(ctx context.Context, root string) (Part, error) {
	cmd := exec.CommandContext(ctx, "go", "env", "GOROOT", "GOVERSION")
	cmd.Dir = root
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := build.Run(cmd); err != nil {
		return Part{}, err
	}
	words := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(words) != 2 {
		return Part{}, fmt.Errorf("go env GOROOT GOVERSION printed %q", out.String())
	}
	part := Part{Name: Library, Version: words[1]}
	for _, dir := range []string{words[0], filepath.Join(words[0], "..")} { // some systems keep it next to
		if err := part.read(dir); err != nil {
			return Part{}, err
		}
		if len(part.Texts) > 0 {
			return part, nil
		}
	}
	// Debian's packages of Go keep the texts elsewhere.
	return part, part.read(fmt.Sprintf("/usr/share/doc/golang-%s-go", strings.TrimPrefix(runtime.Version(), "go")))
}

// choice is the line of a text that lets its users choose one of several licences.
var choice = regexp.MustCompile(`SPDX-License-Identifier: ([A-Za-z0-9.-]+(?: OR [A-Za-z0-9.-]+)+)`)

// chosen returns the licences of a text under which we ship it: of those that its users choose from, the
// allowed ones. The scan need not know the words of one that the line names: psx has its own of BSD-3-Clause.
func chosen(text string, found []string) []string {
	m := choice.FindStringSubmatch(text)
	if m == nil {
		return found
	}
	options := strings.Split(m[1], " OR ")
	first := slices.IndexFunc(options, func(id string) bool { return slices.Contains(allowed, id) })
	if first < 0 {
		return found
	}
	offered := func(id string) bool { // the scan says GPL-2.0 of GPL-2.0-only
		return slices.ContainsFunc(options, func(o string) bool { return o == id || strings.HasPrefix(o, id+"-") })
	}
	found = slices.DeleteFunc(found, func(id string) bool { return offered(id) && !slices.Contains(allowed, id) })
	if !slices.ContainsFunc(found, offered) {
		found = append(found, options[first])
	}
	return found
}

// classify finds the licences of a part.
func (p *Part) classify() error {
	name := strings.TrimSpace(p.Name + " " + p.Version)
	if len(p.Texts) == 0 {
		return fmt.Errorf("%s: no licence text was found", name)
	}
	for _, t := range p.Texts {
		c := licensecheck.Scan([]byte(t.Text))
		if c.Percent < recognised {
			continue // a notice, or a text next to the licence
		}
		var found []string
		for _, m := range c.Match {
			if !m.IsURL && m.ID != grant {
				found = append(found, m.ID)
			}
		}
		p.Licenses = append(p.Licenses, chosen(t.Text, found)...)
	}
	if len(p.Licenses) == 0 {
		return fmt.Errorf("%s: its licence is not a known one", name)
	}
	slices.Sort(p.Licenses)
	p.Licenses = slices.Compact(p.Licenses)
	for _, id := range p.Licenses {
		if !slices.Contains(allowed, id) {
			return fmt.Errorf("%s: licence %s is not among those that this project may ship: %s", name, id, strings.Join(allowed, ", "))
		}
	}
	return nil
}

// Write writes all parts as one text: a list, and then the texts. Equal texts are written
// once, below the names of all parts that have them.
func Write(w io.Writer, parts []Part) error {
	var b bytes.Buffer
	b.WriteString("Carronade contains work of others. This is what it contains, with the licences\nand notices. The texts follow below.\n\n")
	for _, p := range parts {
		fmt.Fprintf(&b, "%s: %s\n", strings.TrimSpace(p.Name+" "+p.Version), strings.Join(p.Licenses, ", "))
	}
	users, order := map[string][]string{}, []string(nil)
	for _, p := range parts {
		for _, t := range p.Texts {
			if users[t.Text] == nil {
				order = append(order, t.Text)
			}
			users[t.Text] = append(users[t.Text], fmt.Sprintf("%s: %s", p.Name, t.Name))
		}
	}
	for _, text := range order {
		fmt.Fprintf(&b, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(users[text], "\n"), text)
	}
	_, err := w.Write(b.Bytes())
	return err
}
