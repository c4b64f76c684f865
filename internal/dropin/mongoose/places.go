package mongoose

import (
	"bufio"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"slices"
	"strings"

	"carronade/internal/kafka/wire"
)

// A list of items has mongoose's own lines, in which a record has no place. So the places of
// the records of a list are in a second file next to it, in the same order: a list as the
// target reads it. Its last line identifies the list that it is for.

// placesOf is the file with the places of a list.
func placesOf(list string) string { return list + ".places" }

// identity is the last line of a file of places: the lines and the checksum of the list.
func identity(lines uint64, sum uint32) string {
	return fmt.Sprintf("of the list with %d lines, crc32c %08x", lines, sum)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A listWriter writes a list, and the places of its records. If a record has none, the
// file of places is missing.
type listWriter struct {
	file     *os.File
	out      *bufio.Writer
	path     string
	places   *wire.ListWriter // nil: none any more
	lines    uint64
	sum      uint32
	unplaced bool
}

// newListWriter makes the list of the records of a topic.
func newListWriter(path, topic string) (*listWriter, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o644)
	if err != nil {
		return nil, err
	}
	w := &listWriter{file: file, out: bufio.NewWriterSize(file, 1<<16), path: path}
	if w.places, err = wire.CreateList(placesOf(path), topic); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return w, nil
}

// add adds a line, and the place of its record; without an offset, a negative one, it has none.
func (w *listWriter) add(line []byte, part int32, offset int64) error {
	w.lines++
	w.sum = crc32.Update(w.sum, castagnoli, line)
	if offset < 0 {
		w.unplaced = true
	} else {
		w.places.Add(wire.ListRun{Partition: max(part, 0), Offset: offset, Count: 1})
	}
	_, err := w.out.Write(line)
	return err
}

// close ends both files. Places that are not complete are removed.
func (w *listWriter) close() error {
	w.places.Comment(identity(w.lines, w.sum))
	err := errors.Join(w.out.Flush(), w.file.Close(), w.places.Close())
	if w.unplaced || err != nil {
		err = errors.Join(err, os.Remove(placesOf(w.path)))
	}
	return err
}

// findPlaces finds the places of the records of the list that the step reads. Without them, or
// if they are not those of the list, it notes why, and the list is a number of records.
func (s *step) findPlaces() {
	list := s.v.text("item-input-file")
	if s.work != readRecords || list == "" {
		return
	}
	err := s.checkPlaces(list)
	if err == nil {
		s.places = placesOf(list)
		return
	}
	if errors.Is(err, os.ErrNotExist) {
		err = fmt.Errorf("%s does not exist", placesOf(list))
	}
	s.placeless = fmt.Sprintf("%s does not say where its records are (%v): as many records of the topic are read, from its beginning", list, err)
}

// errOther is the error of places that are not those of a list.
var errOther = errors.New("its places are those of another list")

// checkPlaces checks that a list has places.
func (s *step) checkPlaces(list string) error {
	last, err := lastLine(placesOf(list))
	if err != nil {
		return err
	}
	f, err := os.Open(list)
	if err != nil {
		return err
	}
	defer f.Close()
	sum := crc32.New(castagnoli)
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if last != "# "+identity(uint64(len(s.items)), sum.Sum32()) {
		return errOther
	}
	records := int64(0)
	topic, err := wire.ReadList(placesOf(list), func(r wire.ListRun) error { records += r.Count; return nil })
	if err == nil && (topic != s.topic || records != int64(len(s.items))) {
		err = errOther
	}
	return err
}

// lastLine returns the last line of a file, if it is not longer than those of this package.
func lastLine(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	end := make([]byte, min(info.Size(), 200))
	if _, err := f.ReadAt(end, info.Size()-int64(len(end))); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	text := strings.TrimSuffix(string(end), "\n")
	return text[strings.LastIndexByte(text, '\n')+1:], nil
}

// single reports whether each record is read as an operation, by its offset. Other reads are
// those of a consumer.
func (s *step) single() bool { return s.work == readRecords && (s.places != "" || s.verifies()) }

// ofSingles are the options that have an effect on reading by offsets, but not on consuming.
var ofSingles = []string{
	"load-op-limit-fail-count", "load-op-limit-fail-rate", "load-op-limit-rate", "load-op-retry", "load-op-wait-finish", "load-op-wait-limit",
	"output-metrics-threshold", "storage-driver-limit-concurrency", "storage-net-linger",
}

// ofVerifying are the options that have an effect on reading with verification.
var ofVerifying = []string{
	"item-data-input-file", "item-data-input-layer-size", "item-data-input-seed", "item-naming-prefix", "item-naming-radix",
	"storage-driver-create-key-enabled", "storage-driver-record-key-enabled",
}

// works reports whether an option has an effect on the step's work.
func (s *step) works(o *option) bool {
	return o.works == "" || strings.Contains(o.works, string(s.work)) || s.single() && slices.Contains(ofSingles, o.name) ||
		s.verifies() && slices.Contains(ofVerifying, o.name)
}
