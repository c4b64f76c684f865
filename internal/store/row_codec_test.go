package store

import (
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func encoded(t testing.TB, r Row) []byte {
	t.Helper()
	b := assert.Value(r.MarshalBinary())(t)
	return b
}

func TestCodec(t *testing.T) {
	odd := Row{ID: "x", At: time.Date(1, 1, 1, 0, 0, 0, 0, time.UTC), Fields: []Field{
		{"a", Value{Kind: KindNumber, Num: math.Copysign(0, -1)}},
		{"aa", Value{Kind: KindCount, Num: 1e18}},
		{"ab", Value{Kind: KindDuration, Num: 1e-9}},
		{"b", Value{Kind: KindBool, Num: 1, Text: "true", Independent: true}},
		{"c", Value{Kind: KindSize, Num: -1, Text: "none", Derived: true}},
		{"d", Value{Text: ""}},
		{"e", Value{Kind: KindSize, Num: 0.5}},
		{"f", Value{Kind: KindSpeed, Num: 1.0 / 3}},
		{"g", Value{Text: "x"}},
	}}
	for name, want := range map[string]Row{"produced": RowOf(producedReport()), "consumed": RowOf(consumedReport()), "odd": odd, "empty": {At: time.Unix(0, 0).UTC(), Fields: []Field{}}} {
		b := encoded(t, want)
		got := assert.Value(UnmarshalRow(b))(t, "%s", name)
		assert.Same(t, got, want, "%s", name)
		assert.True(t, slices.Equal(b, encoded(t, got)), "%s: decoding and encoding changes it", name)
		for n := range b {
			_, err := UnmarshalRow(b[:n])
			assert.Must(t, err != nil, "%s: cut to %d of %d bytes, it is read without an error", name, n, len(b))
		}
		_, err := UnmarshalRow(append(slices.Clone(b), 0))
		assert.True(t, err != nil, "%s: a byte too many is read without an error", name)
	}
}

func TestDecoderSelects(t *testing.T) {
	b := encoded(t, RowOf(producedReport()))
	names := func(fields ...string) (out []string) {
		d := NewRowDecoder(fields)
		for range 2 { // the second row has a known shape
			r := assert.Value(d.Row(b))(t)
			out = nil
			for _, f := range r.Fields {
				out = append(out, f.Name)
			}
		}
		return out
	}
	for _, tt := range []struct {
		name      string
		ask, want []string
	}{
		{"an alias", []string{"duration"}, []string{"for"}},
		{"a percentile with its point", []string{"response_p99.9"}, []string{"response_p999"}},
		{"a flag by its bare name", []string{"workers"}, []string{"flag.workers"}},
		{"a label by its bare name", []string{"team"}, []string{"label.team"}},
		{"all flags", []string{"flag."}, []string{"flag.apm-server.tracing.enabled", "flag.workers"}},
		{"nothing", []string{}, nil},
		{"an unknown name", []string{"nonsense"}, nil},
	} {
		assert.Same(t, names(tt.ask...), tt.want, "%s", tt.name)
	}
	for _, name := range []string{"rate", "branch", "flag.workers", "host.cpu", "system-mem"} {
		assert.True(t, slices.Contains(names(AllIndependent), name), "the independent variables lack %s", name)
	}
	assert.True(t, !slices.Contains(names(AllIndependent), "throughput"), "throughput is among the independent variables")
}

// many makes n rows that differ like those of a real store: in what was
// measured, in their ids and dates, and in a few settings.
func many(t testing.TB, n int) [][]byte {
	base := RowOf(producedReport())
	for i := range 40 { // a target with many settings
		base.Fields = append(base.Fields, Field{fmt.Sprintf("setting-%02d", i), Value{Kind: KindSize, Num: 1024, Text: "1KiB", Independent: true}})
	}
	slices.SortFunc(base.Fields, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	out := make([][]byte, n)
	for i := range out {
		r := Row{ID: fmt.Sprintf("%08d", i), At: began.Add(time.Duration(i) * time.Minute), Fields: slices.Clone(base.Fields)}
		for k := range r.Fields {
			switch f := &r.Fields[k]; {
			case f.Name == "id":
				f.Value.Text = r.ID
			case f.Name == "revision":
				f.Value.Text = fmt.Sprintf("%040x", i/10)
			case !f.Value.Independent && f.Value.Kind == KindDuration:
				f.Value.Num = math.Round(f.Value.Num*1e9*(1+float64(i%97)/1000)) / 1e9
			case !f.Value.Independent && f.Value.Kind != KindText && f.Value.Kind != KindBool:
				f.Value.Num *= 1 + float64(i%89)/1000
			}
		}
		out[i] = encoded(t, r)
	}
	return out
}

// TestRowsAreSmall: 10,000 rows with all their fields fit into a process of 150
// MiB.
func TestRowsAreSmall(t *testing.T) {
	testkit.Need(t, "a second")
	const n, most = 10_000, 120 << 20
	kept := many(t, 500)
	d := NewRowDecoder(nil)
	rows := make([]Row, n)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range rows {
		var err error
		rows[i], err = d.Row(kept[i%len(kept)])
		assert.OK(t, err)
	}
	used := heap() - before
	t.Logf("%d rows of %d fields and %d bytes: %.1f MiB", n, len(rows[0].Fields), len(kept[0]), float64(used)/(1<<20))
	assert.True(t, used <= most, "%d rows take %d bytes, want at most %d", n, used, most)
	runtime.KeepAlive(rows)
}

func BenchmarkDecode(b *testing.B) {
	kept := many(b, 100)
	for name, fields := range map[string][]string{"all": nil, "few": {"rate", "branch", "throughput"}} {
		b.Run(name, func(b *testing.B) {
			d := NewRowDecoder(fields)
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				assert.Value(d.Row(kept[i%len(kept)]))(b)
			}
		})
	}
}

// FuzzUnmarshalRow: any bytes give either a row that can be encoded or an
// error; never a panic, and never a row larger than the bytes.
func FuzzUnmarshalRow(f *testing.F) {
	f.Add(encoded(f, RowOf(producedReport())))
	f.Add(encoded(f, RowOf(consumedReport())))
	f.Add([]byte{codecVersion})
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := UnmarshalRow(data)
		if err != nil {
			return
		}
		assert.Must(t, len(r.Fields) <= len(data), "%d fields from %d bytes", len(r.Fields), len(data))
		for i := 1; i < len(r.Fields); i++ {
			assert.Must(t, r.Fields[i-1].Name < r.Fields[i].Name, "%q before %q", r.Fields[i-1].Name, r.Fields[i].Name)
		}
		again := assert.Value(UnmarshalRow(encoded(t, r)))(t)
		assert.Must(t, len(again.Fields) == len(r.Fields) && again.ID == r.ID, "encoding and decoding changes it")
	})
}
