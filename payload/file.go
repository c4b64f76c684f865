package payload

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"regexp"

	"carronade/internal/place"
	"carronade/units"
)

// maxFile limits the payload file, which is kept in memory: reading it during a run
// would measure the disk.
const maxFile = 1 << 30

// file is a payload file in memory, cut into values.
type file struct {
	data     []byte
	starts   []uint32 // of each value, and a last one for the end
	gap      int      // bytes of the delimiter
	shuffled bool     // drawn at random, with replacement; else in order, repeatedly
	mean     float64
	max      int
}

// fileOptions describe how a file is divided into values.
type fileOptions struct {
	delim    string         // between two values
	match    *regexp.Regexp // the same, as a regular expression; nil: use delim
	shuffled bool
}

// readFile splits a file at every delimiter. A delimiter at the end terminates the last
// value and begins no further one; empty values elsewhere are values.
func readFile(path string, how fileOptions) (*file, error) {
	if path == "" {
		return nil, errors.New("payload has no file: want file:PATH, such as file:lines.txt")
	}
	f, err := place.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the payload file: %w: check the path that --payload names", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.Size() > maxFile {
		return nil, fmt.Errorf("payload file %s has %s, more than %s: use a smaller file, since it is kept in memory", path, units.FormatSize(info.Size()), units.FormatSize(maxFile))
	}
	// A pipe has no size, but the limit applies to it, too.
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, fmt.Errorf("reading the payload file: %w: check the path that --payload names", err)
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("payload file %s has more than %s: use a smaller file, since it is kept in memory", path, units.FormatSize(maxFile))
	}
	out := cut(data, how.delim)
	if how.match != nil {
		out = cutMatches(data, how.match)
	}
	if out == nil {
		return nil, fmt.Errorf("payload file %s is empty: want at least one value in it", path)
	}
	out.shuffled = how.shuffled
	return out, nil
}

// cut returns nil for no data.
func cut(data []byte, delim string) *file {
	if len(data) == 0 {
		return nil
	}
	d := []byte(delim)
	f := &file{data: data, gap: len(d), starts: make([]uint32, 0, bytes.Count(data, d)+2)}
	total := 0
	for at := 0; at < len(data); {
		size := bytes.Index(data[at:], d)
		if size < 0 {
			size = len(data) - at
		}
		f.starts = append(f.starts, uint32(at))
		f.max = max(f.max, size)
		total += size
		at += size + len(d)
	}
	// The end is where a further value would begin, so that every value ends one
	// delimiter before the next.
	last := int(f.starts[len(f.starts)-1])
	end := len(data) + len(d)
	if len(data)-last >= len(d) && bytes.HasSuffix(data[last:], d) {
		end = len(data)
	}
	f.starts = append(f.starts, uint32(end))
	f.mean = float64(total) / float64(f.count())
	return f
}

// cutMatches is cut with a delimiter of variable length. Like java.util.Scanner, it
// does not count an empty value before a match at the very beginning.
func cutMatches(data []byte, delim *regexp.Regexp) *file {
	if len(data) == 0 {
		return nil
	}
	f := &file{}
	add := func(value []byte) {
		f.starts = append(f.starts, uint32(len(f.data)))
		f.data = append(f.data, value...)
		f.max = max(f.max, len(value))
	}
	at := 0
	for _, m := range delim.FindAllIndex(data, -1) {
		if m[1] > m[0] {
			if m[0] > 0 {
				add(data[at:m[0]])
			}
			at = m[1]
		}
	}
	if at < len(data) || len(f.starts) == 0 {
		add(data[at:])
	}
	f.starts = append(f.starts, uint32(len(f.data)))
	f.mean = float64(len(f.data)) / float64(f.count())
	return f
}

func (f *file) count() int { return len(f.starts) - 1 }

func (f *file) line(seed, n uint64) []byte {
	count := uint64(f.count())
	i := n % count
	if f.shuffled {
		i = below(mix(seed, n), count)
	}
	return f.data[f.starts[i] : int(f.starts[i+1])-f.gap]
}
