package standin

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"carronade/internal/host"
	"carronade/internal/standin"
	"carronade/units"
)

// The files of a data folder are kfake's: the segments contain record batches as
// they are sent, and an index next to each has one entry a batch. kfake writes a
// batch before it answers, but does without the sequence numbers of producers until
// it is closed. It also appends to a log of entries with a torn tail, so that what
// follows the tail is lost at the next start.

// windowsFile has the last batches of each producer. kfake writes it last when it
// is closed, and startBroker removes it, so a folder without it was not closed.
const windowsFile = "seq_windows.json"

// recoverData prepares a data folder for kfake after the process that wrote it was
// killed: it cuts off what was being written, completes the indexes, and restores
// the sequence numbers of producers, so that a batch that a producer sends again is
// not stored twice. Each cut is a line in log.
func recoverData(dir string, log io.Writer) error {
	if _, err := os.Stat(filepath.Join(dir, "meta.json")); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a new folder
		}
		return err
	}
	r := &recovery{log: log, producers: make(map[producerKey]*sequences)}
	for _, name := range []string{"groups.log", "pids.log"} {
		if err := r.cut(filepath.Join(dir, name), name, wholeEntries); err != nil {
			return err
		}
	}
	partitions := filepath.Join(dir, "partitions")
	dirs, err := os.ReadDir(partitions)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, d := range dirs {
		if err := r.partition(filepath.Join(partitions, d.Name()), d.Name()); err != nil {
			return err
		}
	}
	windows := filepath.Join(dir, windowsFile)
	if _, err := os.Stat(windows); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	standin.Logf(log, "the stand-in that wrote %s was killed; %s in %s were recovered", dir, units.Plural(int(r.events), "event"), units.Plural(r.partitions, "partition"))
	return r.writeWindows(windows)
}

type recovery struct {
	log        io.Writer
	producers  map[producerKey]*sequences
	events     int64
	partitions int
}

// partition recovers the segments of one partition, in the order of their offsets.
func (r *recovery) partition(dir, name string) error {
	at := strings.LastIndexByte(name, '-')
	index, err := strconv.Atoi(name[at+1:])
	if at < 0 || err != nil {
		return nil //nolint:nilerr // not a partition
	}
	topic, err := url.PathUnescape(name[:at])
	if err != nil {
		return nil //nolint:nilerr // as above
	}
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var segments []int64
	for _, f := range files {
		base, isSegment := strings.CutSuffix(f.Name(), ".dat")
		if n, err := strconv.ParseInt(base, 10, 64); isSegment && err == nil {
			segments = append(segments, n)
		}
	}
	slices.Sort(segments)
	for _, base := range segments {
		var entries []byte
		path := filepath.Join(dir, strconv.FormatInt(base, 10))
		err := r.cut(path+".dat", "partition "+name, func(data []byte) int {
			return wholeBatches(data, func(b storedBatch) {
				r.events += int64(b.records)
				entries = append(entries, indexEntry(b)...)
				if b.producer >= 0 && !b.control {
					key := producerKey{b.producer, topic, index}
					if r.producers[key] == nil {
						r.producers[key] = &sequences{}
					}
					r.producers[key].add(b)
				}
			})
		})
		if err != nil {
			return err
		}
		if err := completeIndex(path+".idx", entries); err != nil {
			return err
		}
	}
	if len(segments) > 0 {
		r.partitions++
	}
	return nil
}

// cut truncates the file to the bytes that whole accepts, and says so. A file that
// does not exist is empty.
func (r *recovery) cut(path, what string, whole func([]byte) int) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	n := whole(data)
	if n == len(data) {
		return nil
	}
	standin.Logf(r.log, "%s: cut off the last %s of %s: incomplete or damaged", what, units.Plural(len(data)-n, "byte"), path)
	return os.Truncate(path, int64(n))
}

// wholeEntries is the length of the entries at the beginning of a log that are
// complete: each is its length, its checksum, and as many bytes.
func wholeEntries(data []byte) int {
	at := 0
	for len(data)-at >= 8 {
		size := int64(binary.LittleEndian.Uint32(data[at:]))
		if size < 2 || size > int64(len(data)-at-8) {
			break
		}
		body := data[at+8 : at+8+int(size)]
		if crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(data[at+4:]) {
			break
		}
		at += 8 + int(size)
	}
	return at
}

// A storedBatch is what recovery needs of a record batch.
type storedBatch struct {
	offset        int64
	records       int32
	transactional bool
	control       bool
	producer      int64
	epoch         int16
	sequence      int32 // of the first record
	maxTimestamp  int64
}

// wholeBatches is the length of the record batches at the beginning of a segment
// that are complete. It calls visit for each.
func wholeBatches(data []byte, visit func(storedBatch)) int {
	at, next := 0, int64(0)
	for len(data)-at >= batchHead {
		h := data[at:]
		size := 12 + int64(binary.BigEndian.Uint32(h[8:]))
		if size < batchHead || size > int64(len(h)) || h[16] != 2 {
			break
		}
		h = h[:size]
		if crc32.Checksum(h[21:], castagnoli) != binary.BigEndian.Uint32(h[17:]) {
			break
		}
		attributes := binary.BigEndian.Uint16(h[21:])
		b := storedBatch{
			offset:        int64(binary.BigEndian.Uint64(h)),
			records:       int32(binary.BigEndian.Uint32(h[57:])),
			transactional: attributes&0x10 != 0,
			control:       attributes&0x20 != 0,
			maxTimestamp:  int64(binary.BigEndian.Uint64(h[35:])),
			producer:      int64(binary.BigEndian.Uint64(h[43:])),
			epoch:         int16(binary.BigEndian.Uint16(h[51:])),
			sequence:      int32(binary.BigEndian.Uint32(h[53:])),
		}
		// The checksum does not cover the offset.
		if b.offset < next || b.records < 0 {
			break
		}
		next = b.offset + int64(int32(binary.BigEndian.Uint32(h[23:]))) + 1
		visit(b)
		at += int(size)
	}
	return at
}

// indexEntrySize is the size of an entry in kfake's index of a segment.
const indexEntrySize = 15

// indexEntry is kfake's entry for a batch: its version, a checksum of the rest, the
// leader's epoch, a time that kfake calculates anew, and whether the batch belongs
// to a transaction.
func indexEntry(b storedBatch) []byte {
	e := make([]byte, indexEntrySize)
	e[0] = 1
	binary.LittleEndian.PutUint64(e[6:], uint64(b.maxTimestamp))
	if b.transactional && !b.control {
		e[14] = 1
	}
	e[1] = byte(crc32.Checksum(e[2:], castagnoli))
	return e
}

// completeIndex adds the entries that an index lacks: a batch is written before its
// entry. Without them, each entry written later would be that of another batch.
func completeIndex(path string, entries []byte) error {
	info, err := os.Stat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	has := 0
	if info != nil {
		has = int(min(info.Size(), int64(len(entries))) / indexEntrySize * indexEntrySize)
	}
	if has == len(entries) {
		return nil // kfake removes the entries beyond
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(entries[has:], int64(has))
	return errors.Join(err, f.Close())
}

type producerKey struct {
	id    int64
	topic string
	index int
}

// sequences are the last batches of a producer in a partition, oldest first. A
// broker remembers five, as many as a producer may have in flight.
type sequences struct {
	epoch   int16
	batches []sequence
}

type sequence struct {
	First  int32 `json:"first_seq"`
	Next   int32 `json:"next_seq"`
	Offset int64 `json:"offset"`
}

const keptSequences = 5

func (s *sequences) add(b storedBatch) {
	if b.epoch != s.epoch {
		s.epoch, s.batches = b.epoch, nil
	}
	if len(s.batches) == keptSequences {
		s.batches = slices.Delete(s.batches, 0, 1)
	}
	// The number after the highest is 0, as kfake calculates it.
	next := (int64(b.sequence) + int64(b.records)) % (1<<31 - 1)
	s.batches = append(s.batches, sequence{b.sequence, int32(next), b.offset})
}

// writeWindows writes the producers' last batches as kfake reads them.
func (r *recovery) writeWindows(path string) error {
	type window struct {
		Producer  int64                   `json:"pid"`
		Topic     string                  `json:"topic"`
		Partition int                     `json:"partition"`
		Entries   [keptSequences]sequence `json:"entries"`
		Count     int                     `json:"count"`
		At        int                     `json:"at"` // where the next one is kept
		Epoch     int16                   `json:"epoch"`
		Seen      bool                    `json:"seen"`
		NextSeq   int32                   `json:"next_seq"`
	}
	var file struct {
		Version int      `json:"version"`
		Windows []window `json:"windows"`
	}
	file.Version = 1
	for key, s := range r.producers {
		n := len(s.batches)
		w := window{
			Producer: key.id, Topic: key.topic, Partition: key.index, Count: n, At: n % keptSequences,
			Epoch: s.epoch, Seen: true, NextSeq: s.batches[n-1].Next,
		}
		copy(w.Entries[:], s.batches)
		file.Windows = append(file.Windows, w)
	}
	data, err := json.Marshal(file)
	if err != nil {
		return err
	}
	// A start that is killed here must not leave half a file, which every later one would read.
	return host.ReplaceFile(path, data)
}
