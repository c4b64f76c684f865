package command

import (
	"errors"
	"os"
	"strings"

	"carronade/internal/traffic"
)

// readParquet reads a table of records, or a trace of a run.
func (t *ProfileTools) readParquet(f *profileFlags, name string, in *input) (sample, error) {
	file, ok := in.file.(*os.File)
	var length int64
	if ok {
		info, err := file.Stat()
		if ok = err == nil && info.Mode().IsRegular(); ok {
			length = info.Size()
		}
	}
	if !ok {
		return nil, &Words{Err: errors.New("Parquet cannot be read from a pipe: its directory is at its end"), Hint: "give the file by its name"}
	}
	if every, ok := traffic.TraceRows(file, length); ok {
		found, err := t.readRecords(f, "trace", name, in, func(to traffic.Sink) error { return traffic.Trace(name, every, to) })
		if err != nil {
			return nil, err
		}
		s := found.from()
		s.Warnings = append(s.Warnings, "a trace has the mean size of the events of each batch, keys and headers included, and no contents")
		return found, nil
	}
	var used []string
	found, err := t.readRecords(f, "parquet", name, in, func(to traffic.Sink) error {
		var err error
		used, err = traffic.Parquet(file, length, to)
		return err
	})
	if err != nil {
		return nil, err
	}
	t.Note("read the columns %s", strings.Join(used, ", "))
	return found, nil
}
