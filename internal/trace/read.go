package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/parquet-go/parquet-go"
)

// A Row is a row of a trace, as Columns describe it. Nil: it is not there.
type Row struct {
	Lane      int64   `parquet:"lane"`
	Sequence  int64   `parquet:"sequence"`
	Attempt   int64   `parquet:"attempt"`
	Stripe    int64   `parquet:"stripe"`
	Event     int64   `parquet:"event"`
	Key       *string `parquet:"key,optional"`
	Phase     string  `parquet:"phase"`
	Due       *int64  `parquet:"due_ns,optional"`
	DueLast   *int64  `parquet:"due_last_ns,optional"`
	Sent      *int64  `parquet:"sent_ns,optional"`
	Done      int64   `parquet:"done_ns"`
	Consumed  *int64  `parquet:"consumed_ns,optional"`
	Partition *int64  `parquet:"partition,optional"`
	Offset    *int64  `parquet:"log_offset,optional"`
	Events    int64   `parquet:"events"`
	Bytes     int64   `parquet:"bytes"`
	Wire      int64   `parquet:"wire_bytes"`
	Acked     int64   `parquet:"acked"`
	Failed    int64   `parquet:"failed"`
	Unknown   int64   `parquet:"unknown"`
	Outcome   string  `parquet:"outcome"`
	Class     *string `parquet:"class,optional"`
	Status    *int64  `parquet:"status,optional"`
	Retries   int64   `parquet:"retries"`
}

// Read calls f with every row of a file, in their order, and with when its
// run began. A row is valid during the call alone. An error of f ends it.
func Read(path string, f func(started time.Time, r *Row) error) error {
	if err := eachRow(path, f); err != nil {
		return fmt.Errorf("read the trace %s: %w", path, err)
	}
	return nil
}

func eachRow(path string, f func(time.Time, *Row) error) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	whole, err := parquet.OpenFile(file, info.Size())
	if err != nil {
		return err
	}
	text, _ := whole.Lookup("carronade.started_at")
	started, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return fmt.Errorf("it does not say when its run began: %w", err)
	}
	reader := parquet.NewGenericReader[Row](whole)
	defer reader.Close()
	rows := make([]Row, 1024)
	for {
		n, err := reader.Read(rows)
		for i := range rows[:n] {
			if err := f(started, &rows[i]); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case n == 0:
			return errors.New("it has no more rows and no end")
		}
		clear(rows)
	}
}
