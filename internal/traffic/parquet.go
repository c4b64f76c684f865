package traffic

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
)

// IsParquet reports whether a file with this beginning is Parquet.
func IsParquet(head []byte) bool { return bytes.HasPrefix(head, []byte("PAR1")) }

// The names of columns, in lower case, the preferred one first.
var (
	keyColumns       = []string{"key", "kafka_key", "_key", "record_key", "message_key"}
	valueColumns     = []string{"value", "payload", "message", "kafka_value", "_value", "record_value", "data", "body"}
	timeColumns      = []string{"timestamp", "ts", "time", "kafka_timestamp", "_timestamp", "event_time", "@timestamp"}
	partitionColumns = []string{"partition", "kafka_partition", "_partition"}
	sizeColumns      = []string{"size", "value_size", "bytes"}
)

// parquetColumns are those that a table of records has; nil for those it lacks.
type parquetColumns struct{ key, value, time, partition, size *parquetColumn }

// Parquet reads a table of records: columns key, value, timestamp, partition and size, or other
// usual names of these, in any case. A table needs a value or a size. It returns the names of
// the columns that it used.
func Parquet(in io.ReaderAt, length int64, to Sink) (used []string, err error) {
	// The library checks much, but not all that a damaged file may contain.
	defer func() {
		if r := recover(); r != nil {
			err = &Error{Where: "the file", Err: fmt.Errorf("it is damaged: %v", r)}
		}
	}()
	file, err := openParquet(in, length)
	if err != nil {
		return nil, &Error{Where: "the footer", Err: err}
	}
	columns := file.Root().Columns()
	if len(columns) > maxParquetColumns {
		return nil, &Error{Where: "the footer", Err: fmt.Errorf("%d columns are more than %d", len(columns), maxParquetColumns)}
	}
	var c parquetColumns
	for _, want := range []struct {
		to    **parquetColumn
		names []string
		kinds []parquet.Kind
	}{
		{&c.key, keyColumns, nil},
		{&c.value, valueColumns, nil},
		{&c.time, timeColumns, []parquet.Kind{parquet.Int64, parquet.Int96, parquet.ByteArray}},
		{&c.partition, partitionColumns, []parquet.Kind{parquet.Int32, parquet.Int64}},
		{&c.size, sizeColumns, []parquet.Kind{parquet.Int32, parquet.Int64}},
	} {
		if col := columnNamed(columns, want.names, want.kinds); col != nil {
			*want.to = &parquetColumn{Column: col}
			used = append(used, col.Name())
		}
	}
	if c.value == nil && c.size == nil {
		var have []string
		for _, col := range columns[:min(len(columns), 12)] {
			have = append(have, col.Name())
		}
		return nil, &Error{Where: "the columns", Err: fmt.Errorf("none is the value of a record or its size: want one of %s; the table has %s", strings.Join(slices.Concat(valueColumns, sizeColumns), ", "), strings.Join(have, ", "))}
	}
	for i, group := range file.RowGroups() {
		for _, p := range []*parquetColumn{c.key, c.value, c.time, c.partition, c.size} {
			if p == nil {
				continue
			}
			if err := checkPages(in, length, p.Compression().CompressionCodec(), &file.Metadata().RowGroups[i].Columns[p.Index()].MetaData, p.MaxDefinitionLevel() > 0, maxPage); err != nil {
				return used, &Error{Where: fmt.Sprintf("row group %d, column %s", i+1, p.Name()), Err: err}
			}
		}
		if err := c.group(group, to); err != nil {
			if errors.Is(err, ErrEnough) {
				return used, err
			}
			return used, &Error{Where: fmt.Sprintf("row group %d", i+1), Err: err}
		}
	}
	return used, nil
}

// openParquet opens a file whose footer was checked.
func openParquet(in io.ReaderAt, length int64) (*parquet.File, error) {
	if err := checkFooter(in, length); err != nil {
		return nil, err
	}
	return parquet.OpenFile(in, length, parquet.SkipPageIndex(true), parquet.SkipBloomFilters(true))
}

const maxParquetColumns = 10_000

// columnNamed finds a flat column of one of the names and kinds; no kinds: any.
func columnNamed(columns []*parquet.Column, names []string, kinds []parquet.Kind) *parquet.Column {
	for _, name := range names {
		for _, c := range columns {
			if c.Leaf() && c.MaxRepetitionLevel() == 0 && strings.EqualFold(c.Name(), name) && (kinds == nil || slices.Contains(kinds, c.Type().Kind())) {
				return c
			}
		}
	}
	return nil
}

// A parquetColumn reads the values of a column in a row group, one after the other.
type parquetColumn struct {
	*parquet.Column
	pages  parquet.Pages
	values parquet.ValueReader
	buffer [512]parquet.Value
	have   []parquet.Value
}

func (p *parquetColumn) open(group parquet.RowGroup) {
	p.values, p.have = nil, nil
	p.pages = group.ColumnChunks()[p.Index()].Pages()
}

// next returns the next value.
func (p *parquetColumn) next() (parquet.Value, error) {
	for len(p.have) == 0 {
		if p.values == nil {
			page, err := p.pages.ReadPage()
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF // there is a row
				}
				return parquet.Value{}, fmt.Errorf("column %s: %w", p.Name(), err)
			}
			p.values = page.Values()
		}
		n, err := p.values.ReadValues(p.buffer[:])
		p.have = p.buffer[:n]
		switch {
		case errors.Is(err, io.EOF):
			p.values = nil
		case err != nil:
			return parquet.Value{}, fmt.Errorf("column %s: %w", p.Name(), err)
		case n == 0:
			return parquet.Value{}, fmt.Errorf("column %s: a page has fewer values than it says", p.Name())
		}
	}
	v := p.have[0]
	p.have = p.have[1:]
	return v, nil
}

// group reads the rows of a group.
func (c *parquetColumns) group(group parquet.RowGroup, to Sink) error {
	var open []*parquetColumn
	for _, p := range []*parquetColumn{c.key, c.value, c.time, c.partition, c.size} {
		if p != nil {
			p.open(group)
			open = append(open, p)
		}
	}
	defer func() {
		for _, p := range open {
			p.pages.Close()
		}
	}()
	var r Record
	var key, value []byte
	for range group.NumRows() {
		r = Record{Log: -1}
		for _, p := range open {
			v, err := p.next()
			if err != nil {
				return err
			}
			switch p {
			case c.key:
				if r.Keyed = !v.IsNull(); r.Keyed {
					key = parquetBytes(key[:0], v)
					r.Key = key
				}
			case c.value:
				if r.Null = v.IsNull(); !r.Null {
					value = parquetBytes(value[:0], v)
					r.Value = value
				}
			case c.time:
				r.Time = parquetTime(p.Type(), v)
			case c.partition:
				if n := parquetInt(v); !v.IsNull() && n >= 0 && n <= math.MaxInt32 {
					r.Log = int32(n)
				}
			case c.size:
				if n := parquetInt(v); c.value == nil && !v.IsNull() {
					if n < 0 || n > 1<<30 {
						return fmt.Errorf("a size of %d is not between 0 and 1 GiB", n)
					}
					r.Size = int(n)
				}
			}
		}
		to.Record(&r)
		if full(to) {
			return ErrEnough
		}
	}
	return nil
}

func parquetBytes(dst []byte, v parquet.Value) []byte {
	if k := v.Kind(); k == parquet.ByteArray || k == parquet.FixedLenByteArray {
		return append(dst, v.ByteArray()...)
	}
	return v.AppendBytes(dst)
}

func parquetInt(v parquet.Value) int64 {
	switch v.Kind() {
	case parquet.Int32:
		return int64(v.Int32())
	case parquet.Int64:
		return v.Int64()
	}
	return 0
}

// parquetTime returns nanoseconds since 1970, 0 for none.
func parquetTime(t parquet.Type, v parquet.Value) int64 {
	if v.IsNull() {
		return 0
	}
	switch v.Kind() {
	case parquet.ByteArray:
		at, _ := jsonTime([]byte(fmt.Sprintf("%q", v.ByteArray())))
		return at
	case parquet.Int96:
		return int96Time(v.Int96())
	}
	n := v.Int64()
	if l := t.LogicalType(); l != nil && n > 0 {
		if stamp, ok := l.Value.(*format.TimestampType); ok && stamp.Unit.Value != nil {
			unit := max(int64(stamp.Unit.Value.Duration()), 1)
			if n < math.MaxInt64/unit {
				return n * unit
			}
			return 0
		}
	}
	at, _ := unixTime(n)
	return at
}

// int96Time reads the time of older writers: nanoseconds of the day, and the Julian day.
func int96Time(v deprecated.Int96) int64 {
	const epoch = 2440588 // the Julian day of 1970-01-01
	day := int64(v[2]) - epoch
	if day < 0 || day > 100_000 {
		return 0
	}
	return day*86_400_000_000_000 + int64(v[1])<<32 + int64(v[0])
}
