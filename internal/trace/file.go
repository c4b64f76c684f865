package trace

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"carronade/internal/place"

	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
)

// magic is at both ends of a Parquet file
// (https://parquet.apache.org/docs/file-format/).
const magic = "PAR1"

// maxGroups limits the footer, which is kept in memory: about 3 KB per row group.
// With a million rows per group the limit is 16 thousand million rows.
const maxGroups = 16_384

var errTooLong = fmt.Errorf("the file has %d row groups, the maximum", maxGroups)

// A disk is the storage of a file.
type disk interface {
	io.WriterAt
	Truncate(size int64) error
	Close() error
}

// A file is a Parquet file that grows by row groups and is readable after each: the
// footer, which locates everything, is at its end at all times. A new group
// overwrites the footer only after a copy of the footer has been written where the
// group will end, so that an interruption leaves the earlier groups readable. Only
// the write of the new footer, a few KB, must not be interrupted.
type file struct {
	f      disk
	device bool // not a regular file; it has no length
	meta   format.FileMetaData
	end    int64  // end of the row groups, start of the footer
	footer []byte // as written at the end
}

// openFile opens a file for writing, replacing an older one.
func openFile(path string) (*file, error) {
	out, err := place.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := out.Stat()
	switch {
	case err != nil:
	case info.Mode()&(fs.ModeNamedPipe|fs.ModeSocket) != 0:
		err = &fs.PathError{Op: "open", Path: path, Err: errors.New("it is a pipe, but the end of a trace is rewritten repeatedly")}
	default:
		return &file{f: out, device: !info.Mode().IsRegular()}, nil
	}
	out.Close()
	return nil, err
}

// begin writes an empty Parquet file, which is already readable.
func (f *file) begin(about []format.KeyValue) error {
	f.end = int64(len(magic))
	f.meta = format.FileMetaData{
		Version: 2, CreatedBy: "carronade", KeyValueMetadata: about,
		RowGroups: thrift.Slice[format.RowGroup]{},
		Schema:    thrift.Slice[format.SchemaElement]{{Name: "trace", NumChildren: thrift.New(int32(colCount))}},
	}
	for i := range columns {
		c := &columns[i]
		e := format.SchemaElement{Name: c.name, Type: thrift.New(format.Int64), RepetitionType: thrift.New(format.Required)}
		if c.optional {
			e.RepetitionType = thrift.New(format.Optional)
		}
		if c.text {
			e.Type, e.ConvertedType = thrift.New(format.ByteArray), thrift.New(deprecated.UTF8)
			e.LogicalType = format.LogicalType{Value: new(format.StringType)}
		}
		f.meta.Schema = append(f.meta.Schema, e)
		f.meta.ColumnOrders = append(f.meta.ColumnOrders, format.ColumnOrder{Value: new(format.TypeDefinedOrder)})
	}
	if err := f.f.Truncate(0); err != nil && !f.device {
		return err
	}
	footer, err := f.encodeFooter()
	if err != nil {
		return err
	}
	if _, err := f.f.WriteAt(append([]byte(magic), footer...), 0); err != nil {
		return err
	}
	f.footer = footer
	return nil
}

// encodeFooter encodes the footer, its length and the magic number.
func (f *file) encodeFooter() ([]byte, error) {
	b, err := thrift.Marshal(&thrift.CompactProtocol{}, &f.meta)
	if err != nil {
		return nil, fmt.Errorf("encode the footer: %w", err)
	}
	b = binary.LittleEndian.AppendUint32(b, uint32(len(b)))
	return append(b, magic...), nil
}

// add writes a row group of the columns. If it fails, the earlier groups remain
// readable.
func (f *file) add(cols []*column, rows int64) error {
	if len(f.meta.RowGroups) >= maxGroups {
		return errTooLong
	}
	at := f.end
	g := format.RowGroup{NumRows: rows, FileOffset: at, Ordinal: int16(len(f.meta.RowGroups))}
	for _, c := range cols {
		g.Columns = append(g.Columns, c.describe(at))
		at += int64(len(c.chunk))
		g.TotalByteSize += c.uncompressed
		g.TotalCompressedSize += int64(len(c.chunk))
	}
	_, err := f.f.WriteAt(f.footer, at)
	for i, off := 0, f.end; err == nil && i < len(cols); i++ {
		_, err = f.f.WriteAt(cols[i].chunk, off)
		off += int64(len(cols[i].chunk))
	}
	var footer []byte
	if err == nil {
		f.meta.RowGroups = append(f.meta.RowGroups, g)
		f.meta.NumRows += rows
		footer, err = f.encodeFooter()
	}
	if err == nil {
		if _, err = f.f.WriteAt(footer, at); err == nil {
			f.end, f.footer = at, footer
			return nil
		}
		f.meta.RowGroups = f.meta.RowGroups[:len(f.meta.RowGroups)-1]
		f.meta.NumRows -= rows
	}
	return errors.Join(err, f.restoreFooter())
}

// restoreFooter writes the footer back to its place. The file already has that
// space, so this works on a full disk.
func (f *file) restoreFooter() error {
	if f.device {
		return nil
	}
	if _, err := f.f.WriteAt(f.footer, f.end); err != nil {
		return fmt.Errorf("restore its footer: %w", err)
	}
	if err := f.f.Truncate(f.size()); err != nil {
		return fmt.Errorf("truncate it: %w", err)
	}
	return nil
}

// size is the length of the file.
func (f *file) size() int64 { return f.end + int64(len(f.footer)) }

func (f *file) close() error { return f.f.Close() }
