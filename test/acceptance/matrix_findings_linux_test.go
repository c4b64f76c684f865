//go:build conformance

package acceptance

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"carronade/test/testkit/assert"
)

// This file keeps and counts the results of a matrix's runs, so that a matrix that
// was killed can be continued.

// A finding is the result of a cell: a line in the file of finished cells.
type finding struct {
	Cell       string   `json:"cell"`
	Build      string   `json:"build"` // of the program under test
	Level      string   `json:"level"`
	Breaches   []string `json:"breaches,omitempty"`
	Blamed     []string `json:"blamed,omitempty"` // reasons that blame the generator for a stop of the system
	Excuse     string   `json:"excuse,omitempty"` // why that is acceptable
	NotChecked string   `json:"unjudged,omitempty"`
	LostMS     float64  `json:"lost_ms,omitempty"` // of clean runs: how long this machine did not run the test
}

// violations are the broken promises of a finding.
func (f *finding) violations() []string {
	out := f.Breaches
	if len(f.Blamed) > 0 && f.Excuse == "" {
		out = append(slices.Clip(out), fmt.Sprintf("the system was stopped, and the generator is blamed: %q", f.Blamed))
	}
	return out
}

// findings are the findings in a file, if there is one, and new ones.
type findings struct {
	path  string
	build string
	all   map[string]finding
}

func openFindings(t *testing.T, path string) *findings {
	t.Helper()
	exe, err := impairedProgram()
	assert.OK(t, err)
	text := assert.Value(os.ReadFile(exe))(t)
	fs := &findings{path: path, build: fmt.Sprintf("%.12x", sha256.Sum256(text)), all: map[string]finding{}}
	if path == "" {
		return fs
	}
	text, err = os.ReadFile(path)
	assert.Must(t, err == nil || os.IsNotExist(err), "%v", err)
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f finding
		if json.Unmarshal(lines.Bytes(), &f) == nil && f.Build == fs.build { // ignore incomplete lines and those of other builds
			fs.all[f.Cell] = f
		}
	}
	return fs
}

func (fs *findings) add(t *testing.T, f finding) {
	t.Helper()
	f.Build = fs.build
	fs.all[f.Cell] = f
	if fs.path == "" {
		return
	}
	line := assert.Value(json.Marshal(f))(t)
	out, err := os.OpenFile(fs.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
		if e := out.Close(); err == nil {
			err = e
		}
	}
	assert.OK(t, err)
}

// close ends a complete matrix: the next one starts from the beginning.
func (fs *findings) close(t *testing.T) {
	if fs.path != "" {
		err := os.Rename(fs.path, fs.path+".last")
		assert.True(t, err == nil || os.IsNotExist(err), "%v", err)
	}
}

// table counts findings by impairment.
func (fs *findings) table(w io.Writer) {
	type row struct{ runs, trusted, noisy, notTrusted, notChecked, breaches int }
	rows := map[string]*row{}
	for _, f := range fs.all {
		parts := strings.Split(f.Cell, " / ")
		for _, name := range []string{parts[len(parts)-1], "~ all"} {
			r := rows[name]
			if r == nil {
				r = &row{}
				rows[name] = r
			}
			r.runs++
			switch f.Level {
			case trusted:
				r.trusted++
			case noisy:
				r.noisy++
			case notTrusted:
				r.notTrusted++
			}
			if f.NotChecked != "" {
				r.notChecked++
			}
			if len(f.violations()) > 0 {
				r.breaches++
			}
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "impairment\truns\ttrusted\tnoisy\tnot trusted\tnot checked\tpromise broken\t")
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", strings.TrimPrefix(name, "~ "), r.runs, r.trusted, r.noisy, r.notTrusted, r.notChecked, r.breaches)
	}
	out.Flush()
}
