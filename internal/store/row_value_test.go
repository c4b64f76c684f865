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

func TestValue(t *testing.T) {
	for _, tt := range []struct {
		v           Value
		show, plain string
		json        any
	}{
		{Value{Kind: KindCount, Num: 1234567}, "1,234,567", "1234567", 1234567.0},
		{Value{Kind: KindCount, Num: -5}, "-5", "-5", -5.0},
		{Value{Kind: KindShare, Num: 0.733}, "73.3%", "0.733", 0.733},
		{Value{Kind: KindDuration, Num: 0.0123}, "12.3 ms", "0.0123", 0.0123},
		{Value{Kind: KindSize, Num: 4096}, "4 KiB", "4096", 4096.0},
		{Value{Kind: KindSpeed, Num: 4096}, "4 KiB/s", "4096", 4096.0},
		{Value{Kind: KindRate, Num: 50000, Text: "50k/s"}, "50k/s", "50000", 50000.0},
		{Value{Kind: KindRate, Num: 150.000000037, Text: "150.000000037/s"}, "150/s", "150.000000037", 150.000000037},
		{Value{Kind: KindRate, Num: 1200.0000003, Text: "1200.0000003/s"}, "1200/s", "1200.0000003", 1200.0000003},
		{Value{Kind: KindRate, Num: 1234.5678, Text: "1.2345678k/s"}, "1234.57/s", "1234.5678", 1234.5678},
		{Value{Kind: KindRate, Num: 1234.5678, Text: "1234.5678/s"}, "1234.5678/s", "1234.5678", 1234.5678},
		{Value{Kind: KindRate, Num: 1.23e6, Text: ">= 1.23 M/s"}, ">= 1.23 M/s", "1230000", 1.23e6},
		{Value{Kind: KindDuration, Num: 2.666666666, Text: "2.666666666s"}, "2.667s", "2.666666666", 2.666666666},
		{Value{Kind: KindDuration, Num: 0.012345678901, Text: "12.345678901ms"}, "12.346ms", "0.012345678901", 0.012345678901},
		{Value{Kind: KindDuration, Num: 90, Text: "90s"}, "90s", "90", 90.0},
		{Value{Text: "1.23456789"}, "1.23456789", "1.23456789", "1.23456789"},
		{Value{Kind: KindTime, Num: 1526638860}, "2018-05-18 10:21:00", "2018-05-18T10:21:00Z", "2018-05-18T10:21:00Z"},
		{Value{Kind: KindBool, Num: 1}, "true", "true", true},
		{Value{Text: "master"}, "master", "master", "master"},
		{Value{}, "", "", ""},
	} {
		assert.Equal(t, tt.v.String(), tt.show, "%+v is shown as", tt.v)
		assert.Equal(t, tt.v.Plain(), tt.plain, "%+v is plainly", tt.v)
		assert.Equal(t, tt.v.Any(), tt.json, "%+v in JSON", tt.v)
	}
}

func TestCompareValues(t *testing.T) {
	ascending := []Value{{Kind: KindSize, Num: -1, Text: "none"}, {Kind: KindNumber, Num: 1}, {Kind: KindNumber, Num: 20}, {Text: "10-20"}, {Text: "a"}, {Text: "b"}}
	for i, a := range ascending {
		for k, b := range ascending {
			want := 0
			switch {
			case i < k:
				want = -1
			case i > k:
				want = 1
			}
			assert.Equal(t, a.Compare(b), want, "%v against %v", a, b)
			assert.Equal(t, a.Equal(b), (i == k), "%v equals %v", a, b)
		}
	}
	assert.True(t, (Value{Kind: KindDuration, Num: 1, Text: "1s"}).Equal(Value{Kind: KindDuration, Num: 1, Text: "1000ms"}), "1s is not 1000ms")
}

func TestGuess(t *testing.T) {
	for text, want := range map[string]ValueKind{
		"10": KindNumber, "-1": KindNumber, "1.5": KindNumber, "1e3": KindNumber, "30s": KindDuration, "1KiB": KindSize, "2MB": KindSize, "true": KindBool,
		"10k": KindText, "10-20": KindText, "lz4": KindText, "": KindText, "NaN": KindText, "Inf": KindText, "0x10": KindText, "1.2.3": KindText, "sha256:1": KindText,
	} {
		assert.Equal(t, guess(text).Kind, want, "%q is a", text)
	}
}

// Reports made before ambiguous texts were refused keep the numbers that these meant.
func TestSettingsOfOlderReports(t *testing.T) {
	for _, test := range []struct {
		kind, text string
		want       ValueKind
		number     float64
	}{
		{"size", "64K", KindSize, 64 << 10},
		{"size", "1.5m", KindSize, 3 << 19},
		{"size", "64KB", KindSize, 64000},
		{"size", "2mb", KindSize, 2e6},
		{"size", "64KiB", KindSize, 64 << 10},
		{"size", "64kib", KindSize, 64 << 10},
		{"size", "64kB", KindSize, 64000},
		{"size", "100b", KindSize, 100},
		{"size", "1500", KindSize, 1500},
		{"size", "none", KindText, 0},
		{"rate", "3m", KindRate, 3e6},
		{"rate", "3/m", KindRate, 0.05},
		{"rate", "50k/s", KindRate, 50000},
	} {
		v := TypedValue(test.kind, test.text)
		assert.True(t, v.Kind == test.want && v.Num == test.number && v.Text == test.text,
			"%s %s: got %+v, want %v %v", test.kind, test.text, v, test.want, test.number)
	}
}

func TestCanonical(t *testing.T) {
	for name, want := range map[string]string{
		"duration": "for", "limit": "system-mem", "report_id": "id", "revision_date": "revision_date", "latency": "per_batch",
		"response_p99.9": "response_p999", "end_to_end_p99.99": "end_to_end_p9999", "a_p1.5": "a_p1.5", "x": "x",
	} {
		assert.Equal(t, Canonical(name), want, "%s", name)
	}
	for alias, name := range aliases {
		assert.True(t, isKnown(name), "%s is an alias of %s, which is not a field", alias, name)
	}
}

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

// many makes n rows that differ like those of a real store: in what was measured, in their ids and dates, and in a few settings.
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

// 10,000 rows with all their fields fit into a process of 150 MiB.
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
		rows[i] = assert.Value(d.Row(kept[i%len(kept)]))(t)
	}
	used := heap() - before
	t.Logf("%d rows of %d fields and %d bytes: %.1f MiB", n, len(rows[0].Fields), len(kept[0]), float64(used)/(1<<20))
	assert.True(t, used <= most, "%d rows take %d bytes, want at most %d", n, used, most)
	runtime.KeepAlive(rows)
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
