package wire

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"pgregory.net/rapid"

	"carronade/test/testkit/assert"
)

func writeItems(t testing.TB, topic string, runs []ListRun) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, topic))(t)
	for _, r := range runs {
		w.Add(r)
	}
	assert.OK(t, errors.Join(w.Close(), w.Close()))
	return path
}

func readItems(t testing.TB, path string) (topic string, runs []ListRun) {
	t.Helper()
	topic = assert.Value(ReadList(path, func(r ListRun) error { runs = append(runs, r); return nil }))(t)
	return topic, runs
}

// singleItems is every record of runs.
func singleItems(runs []ListRun) (all []ListRun) {
	for _, r := range runs {
		for i := range r.Count {
			all = append(all, ListRun{r.Partition, r.Offset + i, 1})
		}
	}
	return all
}

// A list that was written has the same records in the same order, and consecutive ones share a line.
func TestItemsRoundTrip(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		runs := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) ListRun {
			return ListRun{rapid.Int32Range(0, 2).Draw(rt, "partition"), rapid.Int64Range(0, 9).Draw(rt, "offset"), rapid.Int64Range(1, 5).Draw(rt, "count")}
		}), 0, 30).Draw(rt, "runs")
		topic, got := readItems(t, writeItems(t, "orders", runs))
		if topic != "orders" || !slices.Equal(singleItems(got), singleItems(runs)) {
			rt.Fatalf("topic %s: %v, want %v", topic, got, runs)
		}
		for i := 1; i < len(got); i++ {
			if a, b := got[i-1], got[i]; a.Partition == b.Partition && a.Offset+a.Count == b.Offset {
				rt.Fatalf("%v and %v have two lines", a, b)
			}
		}
	})
}

// TestItemsText: the format is the documented one.
func TestItemsText(t *testing.T) {
	text := assert.Value(os.ReadFile(writeItems(t, "orders", []ListRun{{0, 1000, 4}, {0, 1004, 6}, {3, 17, 1}})))(t)
	const want = "# topic: orders\n# partition,offset[,count]\n0,1000,10\n3,17\n"
	assert.Equal(t, string(text), want, "got %q", text)
}

// TestWriteManyItems: what many goroutines write is complete, each record once.
func TestWriteManyItems(t *testing.T) {
	const writers, each = 4, 50_000
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, "t"))(t)
	var wg sync.WaitGroup
	for p := range int32(writers) {
		wg.Go(func() {
			for i := range int64(each) {
				w.Add(ListRun{p, 2 * i, 1})
			}
		})
	}
	wg.Wait()
	assert.OK(t, w.Close())
	var n [writers]int64
	_, runs := readItems(t, path)
	for _, r := range runs {
		assert.Must(t, r.Offset == 2*n[r.Partition] && r.Count == 1, "got %v after %d records", r, n[r.Partition])
		n[r.Partition]++
	}
	assert.Equal(t, n, [writers]int64{each, each, each, each}, "records of each writer")
}

// If the disk fails, the writer says so, does not block, and leaves whole lines.
func TestWriteItemsFails(t *testing.T) {
	if _, err := CreateList(filepath.Join(t.TempDir(), "absent", "list"), "t"); err == nil {
		t.Error("got no error for a missing folder")
	}
	if _, err := os.Stat("/dev/full"); err == nil {
		_, err := CreateList("/dev/full", "t")
		assert.ErrorHas(t, err, "no space left on device", "a full disk")
	}
	path := filepath.Join(t.TempDir(), "list")
	w := assert.Value(CreateList(path, "t"))(t)
	w.Add(ListRun{0, 1, 1})
	w.Add(ListRun{0, 3, 1})
	w.mu.Lock()
	w.hand()
	w.mu.Unlock()
	for len(w.full) > 0 { // until the goroutine has it; what it writes fails or not
		w.Add(ListRun{1, 1, 1})
	}
	w.file.Close()
	for i := range int64(1 << 20) {
		w.Add(ListRun{0, 2 * i, 1})
	}
	err := w.Close()
	assert.ErrorHas(t, err, "the list "+path+" is not complete: ", "the error")
	again := w.Close()
	assert.True(t, again != nil && again.Error() == err.Error(), "the second time: %v", again)
}

// TestParseItemsRefuses: an error names the line and what is wrong with it.
func TestParseItemsRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"0\n":                              `f:1: "0" is not PARTITION,OFFSET`,
		"# c\n\n0,1,2,3\n":                 `f:3: "0,1,2,3" is not PARTITION,OFFSET`,
		"-1,0\n":                           `f:1: "-1" is not a partition`,
		"2147483648,0\n":                   `f:1: "2147483648" is not a partition`,
		"0,x\n":                            `f:1: "x" is not an offset`,
		"0,9223372036854775808\n":          `f:1: "9223372036854775808" is not an offset`,
		"0,0,0\n":                          `f:1: "0" is not a number of records`,
		"0,0,\n":                           `f:1: "" is not a number of records`,
		"0,9223372036854775807,1\n":        `f:1: the offset of its last record is above 2^63`,
		"0,5\n0,12":                        `f:2: the line does not end`,
		"0, 5\n":                           `f:1: " 5" is not an offset`,
		"# topic: a\n# topic: b\n":         `f:2: the list is of topic a and of topic b`,
		strings.Repeat("1", 10_000) + "\n": `f:1: the line is longer than`,
		"0,7\n":                            `f:1: no sevens`,
	} {
		_, err := parseList(strings.NewReader(text), "f", func(r ListRun) error {
			if r.Offset == 7 {
				return errors.New("no sevens")
			}
			return nil
		})
		_, ok := errors.AsType[*listError](err)
		assert.True(t, ok && strings.HasPrefix(err.Error(), want), "%.40q: %v, want %s", text, err, want)
	}
	_, err := parseList(io.MultiReader(strings.NewReader("0,1\n"), failingReader{}), "f", func(ListRun) error { return nil })
	assert.True(t, err != nil && err.Error() == "read f: broken", "a disk that fails: %v", err)
}

type failingReader struct{}

func (failingReader) Read([]byte) (int, error) { return 0, errors.New("broken") }

// A text is refused, or its runs are valid; comments, line ends of Windows and empty lines change nothing.
func FuzzParseItems(f *testing.F) {
	f.Add("# topic: orders\n0,1\n1,2,3\n")
	f.Add("0,1\r\n\r\n#\n")
	f.Add("0,9223372036854775806,1\n0,18446744073709551615\n")
	f.Fuzz(func(t *testing.T, text string) {
		var runs []ListRun
		parse := func(text string) (string, error) {
			runs = nil
			return parseList(strings.NewReader(text), "f", func(r ListRun) error { runs = append(runs, r); return nil })
		}
		topic, err := parse(text)
		if err != nil {
			return
		}
		for _, r := range runs {
			assert.True(t, r.Partition >= 0 && r.Offset >= 0 && r.Count >= 1 && r.Offset+r.Count >= 0, "%q has %+v", text, r)
		}
		first := runs
		if len(text) > 100 { // else lines may become too long
			return
		}
		if again, err := parse(strings.ReplaceAll(text, "\n", "\r\n#\n\n")); err != nil || again != topic || !slices.Equal(runs, first) {
			t.Errorf("%q: %v, with comments %v (%v)", text, first, runs, err)
		}
	})
}

func randomBytes(n, set int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.IntN(set))
	}
	return b
}

// gzip and zstd compress a batch about as well as the Java client (zlib at level 6,
// zstd at level 3), even without repetitions: the bytes on the wire are comparable.
func TestRatios(t *testing.T) {
	words := []byte(strings.Repeat("all work and no play makes a dull boy. ", 400))
	for _, tt := range []struct {
		name       string
		src        []byte
		gzip, zstd float64 // at most
	}{
		{"random", randomBytes(16_000, 256), 1.01, 1.01},
		{"letters", randomBytes(16_000, 26), 0.62, 0.62},
		{"letters, large", randomBytes(500_000, 26), 0.62, 0.62},
		{"seventy-nine characters", randomBytes(16_000, 79), 0.82, 0.82},
		{"seventy-nine characters, large", randomBytes(500_000, 79), 0.82, 0.82},
		{"a small batch", randomBytes(300, 26), 0.75, 0.75},
		{"words", words, 0.02, 0.02},
		{"empty", nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for codec, limit := range map[Codec]float64{Gzip: tt.gzip, Zstd: tt.zstd, Snappy: 2, LZ4: 2, None: 1} {
				z := assert.Value(NewCompressor(codec))(t)
				for range 2 { // a compressor is reusable
					out := assert.Value(z.Append([]byte("before"), tt.src))(t)
					out, ok := bytes.CutPrefix(out, []byte("before"))
					got := float64(len(out)) / float64(max(len(tt.src), 1))
					assert.True(t, ok && (len(tt.src) == 0 || got <= limit), "%v: ratio %.3f, want at most %.3f", codec, got, limit)
					back, err := Decompress(nil, codec, out)
					assert.True(t, err == nil && bytes.Equal(back, tt.src), "%v: decompressed to %d bytes, %v", codec, len(back), err)
				}
			}
		})
	}
}
