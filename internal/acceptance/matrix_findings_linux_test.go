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
)

// This file keeps what came of the runs of a matrix, so that one that was killed
// goes on, and counts it.

// A finding is what came of a cell, a line of the file of finished ones.
type finding struct {
	Cell     string   `json:"cell"`
	Build    string   `json:"build"` // of the program under test
	Level    string   `json:"level"`
	Breaches []string `json:"breaches,omitempty"`
	Blamed   []string `json:"blamed,omitempty"` // reasons that blame the generator for the system's doing
	Excuse   string   `json:"excuse,omitempty"` // why they may
	Unjudged string   `json:"unjudged,omitempty"`
	LostMS   float64  `json:"lost_ms,omitempty"` // of clean runs: how long this machine did not run the test
}

// bad says what a finding breaks.
func (f *finding) bad() []string {
	out := f.Breaches
	if len(f.Blamed) > 0 && f.Excuse == "" {
		out = append(slices.Clip(out), fmt.Sprintf("the system stood still, and the generator is blamed: %q", f.Blamed))
	}
	return out
}

// A ledger of findings: those of a file, where there is one, and new ones.
type findings struct {
	path  string
	build string
	all   map[string]finding
}

func openFindings(t *testing.T, path string) *findings {
	t.Helper()
	exe, err := impaired()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	fs := &findings{path: path, build: fmt.Sprintf("%.12x", sha256.Sum256(text)), all: map[string]finding{}}
	if path == "" {
		return fs
	}
	text, err = os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var f finding
		if json.Unmarshal(lines.Bytes(), &f) == nil && f.Build == fs.build { // one that was cut short, or of another build, counts for nothing
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
	line, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.OpenFile(fs.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = out.Write(append(line, '\n'))
		if e := out.Close(); err == nil {
			err = e
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}

// close ends a matrix that is whole: the next one begins anew.
func (fs *findings) close(t *testing.T) {
	if fs.path != "" {
		if err := os.Rename(fs.path, fs.path+".last"); err != nil && !os.IsNotExist(err) {
			t.Error(err)
		}
	}
}

// table counts findings by impairment.
func (fs *findings) table(w io.Writer) {
	type row struct{ runs, trusted, noisy, not, unjudged, breaches int }
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
				r.not++
			}
			if f.Unjudged != "" {
				r.unjudged++
			}
			if len(f.bad()) > 0 {
				r.breaches++
			}
		}
	}
	out := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(out, "impairment\truns\ttrusted\tnoisy\tnot trusted\tunjudged\tpromise broken\t")
	var names []string
	for name := range rows {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		r := rows[name]
		fmt.Fprintf(out, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t\n", strings.TrimPrefix(name, "~ "), r.runs, r.trusted, r.noisy, r.not, r.unjudged, r.breaches)
	}
	out.Flush()
}
