package trace

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"carronade/internal/place"
)

// magic is at both ends of a Parquet file
// (https://parquet.apache.org/docs/file-format/).
const magic = "PAR1"

// maxGroups limits the footer, which is kept in memory: about 2 KB per row group, twice.
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
	about  []keyValue
	groups compact // the row groups, as the footer has them
	count  int     // of them
	rows   int64
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
func (f *file) begin(about []keyValue) error {
	f.end, f.about = int64(len(magic)), about
	if err := f.f.Truncate(0); err != nil && !f.device {
		return err
	}
	footer := encodeFooter(nil, 0, 0, about)
	if _, err := f.f.WriteAt(append([]byte(magic), footer...), 0); err != nil {
		return err
	}
	f.footer = footer
	return nil
}

// add writes a row group of the columns. If it fails, the earlier groups remain
// readable, and it must not be called again.
func (f *file) add(cols []*column, rows int64) error {
	if f.count >= maxGroups {
		return errTooLong
	}
	end := f.end
	for _, c := range cols {
		end += int64(len(c.chunk))
	}
	f.groups.group(cols, rows, f.end, f.count)
	footer := encodeFooter(f.groups.b, f.count+1, f.rows+rows, f.about)
	_, err := f.f.WriteAt(f.footer, end)
	for i, off := 0, f.end; err == nil && i < len(cols); i++ {
		_, err = f.f.WriteAt(cols[i].chunk, off)
		off += int64(len(cols[i].chunk))
	}
	if err == nil {
		if _, err = f.f.WriteAt(footer, end); err == nil {
			f.count, f.rows, f.end, f.footer = f.count+1, f.rows+rows, end, footer
			return nil
		}
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
