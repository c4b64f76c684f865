// Package parquettest reads traces for tests: files of Parquet with flat columns of integers
// and texts, compressed by zstd. It is responsible for finding everything in them that is not
// as the format says. It is no judge of how other programs read a file: for that testkit runs
// some.
//
// Its invariant: what it returns, statistics and sizes of the file agree with.
package parquettest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"testing"
)

// A File is what a file has.
type File struct {
	Rows    int
	Meta    map[string]string
	Columns []*Column
}

// A Column has a value of each row.
type Column struct {
	Name  string
	Text  bool
	Ints  []int64
	Texts []string
	Null  []bool

	optional bool
}

// Open reads a file. If it cannot be read, the test fails.
func Open(t testing.TB, path string) *File {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Read(b)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return f
}

// Column returns the column of a name, which the file must have.
func (f *File) Column(name string) *Column {
	i := slices.IndexFunc(f.Columns, func(c *Column) bool { return c.Name == name })
	if i < 0 {
		panic("no column " + name)
	}
	return f.Columns[i]
}

// Sum is the sum of the integers that are not null.
func (c *Column) Sum() (sum int64) {
	for _, v := range c.Ints {
		sum += v
	}
	return sum
}

// Nulls is the number of rows without a value.
func (c *Column) Nulls() (n int) {
	for _, null := range c.Null {
		if null {
			n++
		}
	}
	return n
}

// Rows returns the rows of a file, as structs whose fields are tagged with the names of columns.
// A field is an integer or a text, or a pointer to one if the column may be null.
func Rows[T any](f *File) []T {
	rows := make([]T, f.Rows)
	for field := range reflect.TypeFor[T]().NumField() {
		c := f.Column(reflect.TypeFor[T]().Field(field).Tag.Get("parquet"))
		for k := range rows {
			to := reflect.ValueOf(&rows[k]).Elem().Field(field)
			if c.Null[k] {
				continue
			}
			if to.Kind() == reflect.Pointer {
				to.Set(reflect.New(to.Type().Elem()))
				to = to.Elem()
			}
			if c.Text {
				to.SetString(c.Texts[k])
			} else {
				to.SetInt(c.Ints[k])
			}
		}
	}
	return rows
}

const magic = "PAR1"

// Read reads a file in memory.
func Read(b []byte) (f *File, err error) {
	defer func() {
		if r := recover(); r != nil { // beyond the end of something, or of another type
			err = fmt.Errorf("damaged: %v", r)
		}
	}()
	if string(b[:4]) != magic || string(b[len(b)-4:]) != magic {
		return nil, errors.New("no Parquet")
	}
	end := len(b) - 8 - int(binary.LittleEndian.Uint32(b[len(b)-8:]))
	d := &decoder{b: b[end : len(b)-8]}
	meta := d.structure()
	check(len(d.b) == 0, "bytes after the footer")
	f = &File{Rows: int(meta.integer(3)), Meta: map[string]string{}}
	for _, kv := range meta.list(5) {
		key := kv.(structure).text(1)
		_, again := f.Meta[key]
		check(!again, "a key twice")
		f.Meta[key] = kv.(structure).text(2)
	}
	schema := meta.list(2)
	check(schema[0].(structure).integer(5) == int64(len(schema)-1), "the number of columns")
	for _, e := range schema[1:] {
		s := e.(structure)
		f.Columns = append(f.Columns, &Column{Name: s.text(4), Text: s.integer(1) == 6, optional: s.integer(3) == 1})
	}
	check(len(meta.list(7)) == len(f.Columns), "the orders of columns")
	at := int64(len(magic))
	rows := int64(0)
	for i, g := range meta.list(4) {
		group := g.(structure)
		check(group.integer(5) == at && group.integer(7) == int64(i), "the place of a row group")
		rows += group.integer(3)
		packed, unpacked := int64(0), int64(0)
		for i, c := range group.list(1) {
			chunk := c.(structure)
			m := chunk[3].(structure)
			check(chunk.integer(2) == at && m.integer(4) == 6, "the place or the codec of a column")
			r := &reader{column: f.Columns[i], meta: m, at: at, chunk: b[at : at+m.integer(7)]}
			r.read(group.integer(3))
			at, packed, unpacked = at+m.integer(7), packed+m.integer(7), unpacked+m.integer(6)
		}
		check(group.integer(2) == unpacked && group.integer(6) == packed, "the size of a row group")
	}
	check(rows == int64(f.Rows) && at <= int64(end), "the rows or the end of the row groups") // the footer may be moved on already
	return f, nil
}

// check panics unless something holds.
func check(holds bool, what string) {
	if !holds {
		panic(what)
	}
}
