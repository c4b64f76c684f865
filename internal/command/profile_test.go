package command

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"carronade/internal/testkit/assert"
	"carronade/internal/wire/apm"
	"carronade/internal/wire/riemann"
	"carronade/internal/workload"
	"carronade/target"
	targetapm "carronade/target/apm"
	"carronade/target/kafka"
	targetriemann "carronade/target/riemann"
)

// fitted runs the command on a file.
func fitted(t *testing.T, path string, args ...string) (out, words string, err error) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	note := func(format string, args ...any) { fmt.Fprintf(&stderr, format+"\n", args...) }
	tools := ProfileTools{
		Console: Console{Out: &stdout, Note: note, Warn: func(text string) { note("warning: %s", text) }, In: strings.NewReader("")},
		Err:     &stderr,
	}
	cmd := Profile(tools)
	cmd.SetArgs(append([]string{path}, args...))
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	err = cmd.ExecuteContext(t.Context())
	return stdout.String(), stderr.String(), err
}

// agents are requests of agents, a hundred a second.
func agents(t *testing.T, requests int) []byte {
	t.Helper()
	mk, err := apm.NewMaker(apm.Makeup{Events: apm.Range{Min: 1, Max: 9}, Spans: apm.Range{Max: 4}, Frames: apm.Range{Min: 2, Max: 2}, Mix: [apm.Kinds]int{6, 0, 2, 1, 1}}, 1)
	assert.OK(t, err)
	var out []byte
	for n := range requests {
		b := mk.Make(uint64(n))
		b.Stamp(1, uint64(n), 1767323045_000_000+int64(n)*10_000)
		out = append(out, b.Bytes...)
	}
	return out
}

// message is a message of Riemann in its frame.
func message(i int) []byte {
	return riemann.AppendFramed(nil, &riemann.Msg{Events: []riemann.Event{{
		Service: fmt.Sprintf("secret service %d", i%40), Host: fmt.Sprintf("secret host %d", i%4), State: []string{"ok", "ok", "critical", "secret state"}[i%4],
		Description: "a secret text", Tags: []string{"a", "b"}, Attributes: []riemann.Attribute{{Key: "zone", Value: "secret zone"}},
		HasTime: true, Time: 1767323045 + int64(i)/50, HasTTL: true, TTL: 60, Metric: riemann.Metric{Kind: riemann.Float, Real: float64(i % 7)},
	}}})
}

// pcap is a capture of IP packets, each with bytes of one connection, a millisecond apart.
func pcap(pieces [][]byte) []byte {
	be, le := binary.BigEndian, binary.LittleEndian
	head := append(le.AppendUint32(nil, 0xa1b2c3d4), 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0)
	out := le.AppendUint32(head, 101)
	for i, seq := 0, uint32(0); i < len(pieces); i++ {
		p := be.AppendUint16([]byte{0x45, 0}, uint16(40+len(pieces[i])))
		p = append(p, 0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2, 4, 0, 21, 179)
		p = be.AppendUint32(be.AppendUint32(p, seq), 0)
		p = append(append(p, 5<<4, 16, 0xff, 0xff, 0, 0, 0, 0), pieces[i]...)
		seq += uint32(len(pieces[i]))
		out = le.AppendUint32(le.AppendUint32(out, 1767323045+uint32(i)/1000), uint32(i%1000*1000))
		out = append(le.AppendUint32(le.AppendUint32(out, uint32(len(p))), uint32(len(p))), p...)
	}
	return out
}

type tableRow struct {
	Key       string    `parquet:"key"`
	Value     string    `parquet:"value"`
	Timestamp time.Time `parquet:"timestamp,timestamp(millisecond)"`
}

// files are one of each format.
func files(t *testing.T) map[string][]byte {
	t.Helper()
	var messages, lines []byte
	var pieces [][]byte
	var rows []tableRow
	for i := range 2000 {
		messages = append(messages, message(i)...)
		pieces = append(pieces, message(i))
		lines = fmt.Appendf(lines, `{"key":"secret %d","value":"a secret value %d","ts":%d,"headers":["trace","secret %d"]}`+"\n", i%100, i*i, 1767323045000+i*2, i)
		rows = append(rows, tableRow{fmt.Sprint("secret ", i%100), fmt.Sprint("a secret value ", i*i), time.UnixMilli(1767323045000 + int64(i)*2)})
	}
	var table bytes.Buffer
	assert.OK(t, parquet.Write(&table, rows))
	return map[string][]byte{"apm": agents(t, 200), "riemann": messages, "pcap": pcap(pieces), "ndjson": lines, "parquet": table.Bytes()}
}

// Every workload is one that can be run, and has nothing of what was read.
func TestWorkloadsAreValid(t *testing.T) {
	for kind, data := range files(t) {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			assert.OK(t, os.WriteFile(path, data, 0o600))
			out, words, err := fitted(t, path)
			assert.OK(t, err, "%s", words)
			docs, err := workload.Read(kind, strings.NewReader(out))
			assert.OK(t, err, "of\n%s", out)
			w, err := workload.Resolve([]target.Kind{kafka.Kind{}, targetriemann.Kind{}, targetapm.Kind{}}, nil, docs[0])
			assert.OK(t, err, "of\n%s", out)
			assert.True(t, w.String("rate") != "" || w.String("shape") != "", "got no schedule in\n%s", out)
			assert.True(t, strings.Contains(strings.Join(strings.Fields(words), " "), "all that it has"), "got the summary\n%s", words)
			asJSON, _, err := fitted(t, path, "--json")
			var d profileDocument
			if err != nil || json.Unmarshal([]byte(asJSON), &d) != nil || d.Schema != profileSchema || d.Source.Kind != kind || d.Workload != out {
				t.Errorf("got %v and %.200s", err, asJSON)
			}
			for _, text := range []string{out, words, asJSON} {
				assert.True(t, !strings.Contains(text, "secret"), "got something of what was read in\n%s", text)
			}
			for line := range strings.Lines(out + words) {
				if len(line) > 81 && !strings.HasPrefix(line, "- ") && !strings.HasPrefix(line, "warning: ") {
					t.Errorf("got a line of %d columns: %s", len(line), line)
				}
			}
			if n := strings.Count(words, "\n"); n > 40 {
				t.Errorf("got a summary of %d lines, want at most 40", n)
			}
		})
	}
}

func TestRequestsAreKept(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "file"), filepath.Join(dir, "kept")
	data := agents(t, 20)
	assert.OK(t, os.WriteFile(path, data, 0o600))
	out, _, err := fitted(t, path, "--keep-samples", kept)
	assert.Must(t, err == nil && strings.Contains(out, "corpus: "+kept+"\n"), "got %v and\n%s", err, out)
	if got, err := os.ReadFile(kept); err != nil || !bytes.Equal(got, data) {
		t.Errorf("got %d bytes and %v, want the %d of the requests", len(got), err, len(data))
	}
}

// A file is not replaced by what is written about it.
func TestTheSourceIsNotReplaced(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	data := []byte("{\"value\":\"v\"}\n")
	for _, flag := range []string{"--output", "--keep-samples"} {
		assert.OK(t, os.WriteFile(path, data, 0o600))
		_, _, err := fitted(t, path, flag, filepath.Join(filepath.Dir(path), ".", "file"))
		if got, _ := os.ReadFile(path); err == nil || !strings.Contains(err.Error(), "it is the file that is read") || !bytes.Equal(got, data) {
			t.Errorf("%s: got %v, and the file has %q", flag, err, got)
		}
	}
}

func TestTruncatedFilesAreRefused(t *testing.T) {
	for kind, data := range files(t) {
		t.Run(kind, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "file")
			assert.OK(t, os.WriteFile(path, data[:len(data)-20], 0o600))
			_, _, err := fitted(t, path)
			var w *Words
			if !errors.As(err, &w) || w.Hint == "" || !strings.HasPrefix(w.Error(), path+", as "+kind) {
				t.Errorf("got %v, want an error with the file, the format and a hint", err)
			}
		})
	}
}

func TestScalarsAreQuoted(t *testing.T) {
	tests := []struct{ value, want string }{
		{"100", "100"},
		{"kafka://127.0.0.1:9092/t", "kafka://127.0.0.1:9092/t"},
		{"zipf(10,1.1)", `"zipf(10,1.1)"`},
		{"a: b", `"a: b"`},
		{"-x", `"-x"`},
		{"", `""`},
		{`id=${string:format("%02d", 1)}`, `"id=${string:format(\"%02d\", 1)}"`},
	}
	for _, test := range tests {
		assert.Equal(t, scalar(test.value), test.want, "of %s", test.value)
	}
	for r := range rune(0x3000) { // every character comes back
		want := " " + string(r) + "a"
		docs, err := workload.ParseDocument("f", []byte("note: "+scalar(want)+"\n"))
		if err != nil || docs.Entries[0].Values[0] != want {
			t.Errorf("%q became %+v, %v", want, docs, err)
		}
	}
}
