package traffic

import (
	"bytes"
	"carronade/internal/testkit/assert"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/format"
)

// found keeps what a reader gives.
type found struct {
	records []Record
	batches []Batch
	most    int // 0: no limit
}

func (f *found) Record(r *Record) {
	c := *r
	c.Key, c.Value = bytes.Clone(r.Key), bytes.Clone(r.Value)
	c.Headers = nil
	for _, h := range r.Headers {
		c.Headers = append(c.Headers, Header{Name: bytes.Clone(h.Name), Value: bytes.Clone(h.Value)})
	}
	f.records = append(f.records, c)
}
func (f *found) Batch(b Batch) { f.batches = append(f.batches, b) }
func (f *found) Full() bool    { return f.most > 0 && len(f.records) >= f.most }

type tableRow struct {
	Key       *string   `parquet:"key,optional"`
	Value     []byte    `parquet:"Value"`
	Timestamp time.Time `parquet:"timestamp,timestamp(millisecond)"`
	Partition int32     `parquet:"partition"`
}

// table writes rows as Parquet, in groups of a hundred.
func table[T any](t testing.TB, rows []T) []byte {
	t.Helper()
	var out bytes.Buffer
	w := parquet.NewGenericWriter[T](&out, parquet.MaxRowsPerRowGroup(100), parquet.Compression(&parquet.Zstd))
	if _, err := w.Write(rows); err != nil {
		t.Fatal(err)
	}
	assert.OK(t, w.Close())
	return out.Bytes()
}

func readParquet(data []byte, to Sink) ([]string, error) {
	return Parquet(bytes.NewReader(data), int64(len(data)), to)
}

func TestParquetReadsATable(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key := "a key"
	var rows []tableRow
	for i := range 1000 {
		r := tableRow{Value: bytes.Repeat([]byte{'x'}, i), Timestamp: at.Add(time.Duration(i) * time.Millisecond), Partition: int32(i % 3)}
		if i%2 == 0 {
			r.Key = &key
		}
		rows = append(rows, r)
	}
	data := table(t, rows)
	assert.Must(t, IsParquet(data), "the file is not recognized")
	var got found
	used, err := readParquet(data, &got)
	if err != nil || len(got.records) != 1000 || strings.Join(used, " ") != "key Value timestamp partition" {
		t.Fatalf("got %d records of %v and %v, want 1000", len(got.records), used, err)
	}
	for i, r := range got.records {
		if r.Keyed != (i%2 == 0) || r.Keyed && string(r.Key) != key || len(r.Value) != i || r.Time != rows[i].Timestamp.UnixNano() || r.Log != int32(i%3) {
			t.Fatalf("record %d: got %+v", i, r)
		}
	}
	got = found{most: 7}
	if _, err := readParquet(data, &got); !errors.Is(err, ErrEnough) || len(got.records) != 7 {
		t.Errorf("got %d records and %v, want 7 and an end", len(got.records), err)
	}
}

func TestParquetOfOtherColumns(t *testing.T) {
	type sizes struct {
		TS   int64  `parquet:"ts"`
		Size int32  `parquet:"size"`
		Key  int64  `parquet:"record_key"`
		More []byte `parquet:"more"`
	}
	var got found
	if _, err := readParquet(table(t, []sizes{{TS: 1767323045, Size: 77, Key: 5}}), &got); err != nil {
		t.Fatal(err)
	}
	if r := got.records[0]; r.Size != 77 || r.Value != nil || r.Time != 1767323045e9 || !r.Keyed {
		t.Errorf("got %+v, want a size of 77 at 1767323045 s", r)
	}
}

func TestParquetRefuses(t *testing.T) {
	type other struct{ A, B int64 }
	good := table(t, []tableRow{{Value: []byte("v"), Timestamp: time.Unix(1, 0)}})
	tests := []struct {
		name string
		data []byte
		want string
	}{
		{"no value", table(t, []other{{1, 2}}), "none is the value of a record"},
		{"cut", good[:len(good)-9], "the footer"},
		{"only the beginning", good[:4], "the footer"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := readParquet(test.data, &found{})
			var at *Error
			assert.True(t, errors.As(err, &at) && strings.Contains(err.Error(), test.want), "got %v, want %q", err, test.want)
		})
	}
}

func FuzzParquet(f *testing.F) {
	key := "k"
	f.Add(table(f, []tableRow{{Key: &key, Value: []byte("v"), Timestamp: time.Unix(1, 0)}, {Value: []byte("w")}}))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) > 1<<16 {
			return
		}
		TraceRows(bytes.NewReader(data), int64(len(data)))
		got := found{most: 1000}
		_, err := readParquet(data, &got)
		if at := (*Error)(nil); err != nil && !errors.Is(err, ErrEnough) && !errors.As(err, &at) {
			t.Errorf("got %v, want an error that says where", err)
		}
	})
}

// A damaged file is an error, or is read; it takes no memory that its lengths only claim.
func TestParquetDamaged(t *testing.T) {
	key := "k"
	good := table(t, []tableRow{{Key: &key, Value: []byte("v"), Timestamp: time.Unix(1, 0)}, {Value: []byte("w")}})
	rng := rand.New(rand.NewPCG(1, 1))
	refused := 0
	for range 3000 {
		data := bytes.Clone(good)
		for range 1 + rng.IntN(3) {
			data[rng.IntN(len(data))] = byte(rng.Uint32())
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		TraceRows(bytes.NewReader(data), int64(len(data)))
		_, err := readParquet(data, &found{most: 1000})
		runtime.ReadMemStats(&after)
		if at := (*Error)(nil); err != nil && !errors.Is(err, ErrEnough) && !errors.As(err, &at) {
			t.Fatalf("got %v, want an error that says where", err)
		}
		if err != nil {
			refused++
		}
		if got := (after.TotalAlloc - before.TotalAlloc) >> 20; got > 600 {
			t.Fatalf("got %d MiB for a file of %d bytes", got, len(data))
		}
	}
	assert.True(t, refused >= 500, "got %d refused files of 3000, want more than 500", refused)
}

// A footer of many empty parts is refused before they take memory: each byte would take hundreds.
func TestParquetFootersAreBounded(t *testing.T) {
	const groups = 1 << 20
	footer := append([]byte{0x49, 0xfc}, binary.AppendUvarint(nil, groups)...) // field 4, a list of structs
	footer = append(append(footer, make([]byte, groups)...), 0)
	data := append([]byte("PAR1"), footer...)
	data = append(binary.LittleEndian.AppendUint32(data, uint32(len(footer))), "PAR1"...)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := readParquet(data, &found{})
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; !errors.Is(err, errMany) || got > 4*groups {
		t.Errorf("got %v with %d MiB", err, got>>20)
	}
}

// pageRow has one large column.
type pageRow struct {
	Value []byte `parquet:"value"`
}

// A page that is larger than it says is refused before it is decompressed, whatever compressed it.
func TestParquetPagesAreBounded(t *testing.T) {
	const size = 1 << 20
	tests := []struct {
		name  string
		codec compress.Codec
	}{
		{"gzip", &parquet.Gzip}, {"snappy", &parquet.Snappy}, {"zstd", &parquet.Zstd}, {"brotli", &parquet.Brotli}, {"lz4", &parquet.Lz4Raw},
	}
	for _, test := range tests {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("%s, version %d", test.name, version), func(t *testing.T) {
				var out bytes.Buffer
				w := parquet.NewGenericWriter[pageRow](&out, parquet.Compression(test.codec), parquet.DataPageVersion(version))
				_, err := w.Write([]pageRow{{make([]byte, size)}, {[]byte("small")}})
				assert.OK(t, errors.Join(err, w.Close()))
				data := out.Bytes()
				var got found
				if _, err := readParquet(data, &got); err != nil || len(got.records) != 2 || len(got.records[0].Value) != size {
					t.Fatalf("got %d records and %v, want 2", len(got.records), err)
				}
				// Its pages claim to have one byte.
				claims := 0
				for n := size; n < size+64; n++ {
					long := binary.AppendUvarint(nil, uint64(n)<<1)
					for at := bytes.Index(data, long); at >= 0; at = bytes.Index(data, long) {
						copy(data[at:], []byte{0x80 | 2, 0x80, 0x80, 0})
						claims++
					}
				}
				assert.Must(t, claims != 0, "no size was found in the file")
				_, err = readParquet(data, &found{})
				assert.True(t, errors.Is(err, errPageSize), "got %v, want %v", err, errPageSize)
			})
		}
	}
}

// In the delta encodings a small page can have very many or very long values. They are added up
// before the library allocates them.
func TestParquetDeltaIsBounded(t *testing.T) {
	const size, rows = 64 << 10, 100
	long := bytes.Repeat([]byte("a"), size)
	for _, optional := range []bool{false, true} {
		for version := 1; version <= 2; version++ {
			t.Run(fmt.Sprintf("optional %v, version %d", optional, version), func(t *testing.T) {
				node := parquet.Encoded(parquet.Leaf(parquet.ByteArrayType), &parquet.DeltaByteArray)
				if optional {
					node = parquet.Optional(node)
				}
				var out bytes.Buffer
				w := parquet.NewGenericWriter[pageRow](&out, parquet.NewSchema("row", parquet.Group{"value": node}), parquet.Compression(&parquet.Snappy), parquet.DataPageVersion(version), parquet.PageBufferSize(2*size*rows))
				for range rows {
					if _, err := w.Write([]pageRow{{long}}); err != nil {
						t.Fatal(err)
					}
				}
				assert.OK(t, w.Close())
				data := out.Bytes()
				var got found
				if _, err := readParquet(data, &got); err != nil || len(got.records) != rows || len(data) > size*rows/10 {
					t.Fatalf("got %d records of %d bytes and %v", len(got.records), len(data), err)
				}
				file, err := openParquet(bytes.NewReader(data), int64(len(data)))
				assert.OK(t, err)
				check := func(most int64) error {
					return checkPages(bytes.NewReader(data), int64(len(data)), format.Snappy, &file.Metadata().RowGroups[0].Columns[0].MetaData, optional, most)
				}
				if err := check(size * rows); err != nil {
					t.Errorf("got %v for values that fit", err)
				}
				if err := check(size*rows - 1); !errors.Is(err, errDeltaLong) {
					t.Errorf("got %v, want %v", err, errDeltaLong)
				}
			})
		}
	}
}

// The numbers of a list come back as the library writes them, and its end is found.
func TestDeltaSum(t *testing.T) {
	list := func(numbers ...int32) []byte {
		b, err := new(delta.BinaryPackedEncoding).EncodeInt32(nil, numbers)
		assert.OK(t, err)
		return b
	}
	many := make([]int32, 1000)
	sum := uint64(0)
	for i := range many {
		many[i] = int32(i * i % 7777)
		sum += uint64(many[i])
	}
	tests := []struct {
		name string
		list []byte
		most int64
		sum  uint64
		err  error
	}{
		{"none", list(), 0, 0, nil},
		{"one", list(7), 1, 7, nil},
		{"many", list(many...), 1000, sum, nil},
		{"equal", list(make([]int32, 500)...), 500, 0, nil},
		{"too many", list(many...), 999, 0, errDeltaMany},
		{"billions in a few bytes", binary.AppendVarint(binary.AppendUvarint([]byte{128, 1, 4}, 1<<31-1), 0), maxPageValues, 0, errDeltaMany},
		{"lengths that wrap around", binary.AppendVarint([]byte{128, 1, 4, 1}, 1<<20-1<<32), 1, 1 << 20, nil},
		{"truncated", list(many...)[:3], 1000, 0, errDelta},
		{"nothing", nil, 1000, 0, errDelta},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			rest, got, err := deltaSum(append(bytes.Clone(test.list), "rest"...), test.most)
			if !errors.Is(err, test.err) || got != test.sum || err == nil && string(rest) != "rest" {
				t.Errorf("got %d, %q and %v; want %d and %v", got, rest, err, test.sum, test.err)
			}
		})
	}
}
