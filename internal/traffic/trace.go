package traffic

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"carronade/internal/trace"
)

// TraceRows reports whether a file of Parquet is a trace of a run, and of how many events each
// row is one: 0 if rows are batches.
func TraceRows(in io.ReaderAt, length int64) (every uint64, ok bool) {
	defer func() {
		if recover() != nil { // a damaged file, which Parquet reports
			every, ok = 0, false
		}
	}()
	file, err := openParquet(in, length)
	if err != nil {
		return 0, false
	}
	if _, ok = file.Lookup("carronade.started_at"); !ok {
		return 0, false
	}
	rows, _ := file.Lookup("carronade.rows")
	if text, found := strings.CutPrefix(rows, "a row for one of "); found {
		text, _, _ = strings.Cut(text, " ")
		every, _ = strconv.ParseUint(text, 10, 32)
	}
	return every, true
}

// maxTraceEvents limits the events of a row of a trace.
const maxTraceEvents = 1 << 24

// Trace reads the trace of a run: when its events were due, or sent if it had no schedule, how
// large they were in the mean of each batch, and their keys if it has them. Sizes include keys
// and headers.
func Trace(path string, every uint64, to Sink) (err error) {
	defer func() {
		if r := recover(); r != nil { // the reader of traces trusts what wrote them
			err = &Error{Where: "the file", Err: fmt.Errorf("it is damaged: %v", r)}
		}
	}()
	enough := false
	err = trace.Read(path, func(started time.Time, row *trace.Row) error {
		if row.Events < 0 || row.Events > maxTraceEvents || row.Bytes < 0 {
			return fmt.Errorf("a row has %d events of %d bytes", row.Events, row.Bytes)
		}
		first, last := row.Done, row.Done
		switch {
		case row.Due != nil && row.DueLast != nil:
			first, last = *row.Due, *row.DueLast
		case row.Sent != nil:
			first, last = *row.Sent, *row.Sent
		}
		r := Record{Log: -1, Stands: every}
		if row.Partition != nil && *row.Partition >= 0 && *row.Partition < 1<<31 {
			r.Log = int32(*row.Partition)
		}
		if row.Key != nil {
			r.Keyed, r.Key = true, []byte(*row.Key)
		}
		for i := range row.Events {
			// The remainder of the division goes to the first events.
			r.Size = int(row.Bytes / row.Events)
			if i < row.Bytes%row.Events {
				r.Size++
			}
			r.Size = max(0, r.Size-len(r.Key))
			r.Time = started.UnixNano() + first
			if row.Events > 1 {
				r.Time += (last - first) / (row.Events - 1) * i
			}
			to.Record(&r)
			if full(to) {
				enough = true
				return ErrEnough
			}
		}
		if every == 0 && row.Events > 0 {
			to.Batch(Batch{Events: int(row.Events), Plain: row.Bytes})
		}
		return nil
	})
	if enough {
		return ErrEnough
	}
	if err != nil {
		return &Error{Where: "the file", Err: err}
	}
	return nil
}
