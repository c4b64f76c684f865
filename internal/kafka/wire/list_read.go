package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"carronade/internal/place"
)

// Lists of records are text files that say where in a topic each record is. A list has a line
// PARTITION,OFFSET for a record, or PARTITION,OFFSET,COUNT for records with consecutive offsets.
// Lines that begin with # and empty lines are comments; the comment "# topic: NAME" names the
// topic. Every line ends in a line feed, so that a list that was cut off is recognized.

// A ListRun is a number of records with consecutive offsets.
type ListRun struct {
	Partition int32
	Offset    int64 // of the first one
	Count     int64 // at least 1
}

// listTopic begins the line that names the topic.
const listTopic = "# topic: "

// maxListLine limits the length of a line, in bytes.
const maxListLine = 4096

// A listError is a line that is not one of a list.
type listError struct {
	File string
	Line int // from 1
	Why  string
}

// Error implements error.
func (e *listError) Error() string { return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Why) }

// ReadList reads the list in a file and calls add with its runs, in order. It returns the topic
// that the list names, "" if it names none. An error of add is one of its line. An error
// about a line is a *listError.
func ReadList(path string, add func(ListRun) error) (topic string, err error) {
	f, err := place.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	return parseList(f, path, add)
}

// parseList is ReadList for any text. The name is that of the file, for errors.
func parseList(in io.Reader, name string, add func(ListRun) error) (topic string, err error) {
	lines := bufio.NewReaderSize(place.TextReader(in), maxListLine)
	for number := 1; ; number++ {
		wrong := func(why string) error { return &listError{name, number, why} }
		text, err := lines.ReadSlice('\n')
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			return topic, wrong(fmt.Sprintf("the line is longer than %d bytes", maxListLine))
		case !errors.Is(err, io.EOF):
			return topic, fmt.Errorf("read %s: %w", name, err)
		case len(text) > 0:
			return topic, wrong("the line does not end: the list was cut off, or it lacks the last line feed")
		default:
			return topic, nil
		}
		line := strings.TrimRight(string(text), "\r\n")
		if named, ok := strings.CutPrefix(line, listTopic); ok {
			if topic != "" && topic != named {
				return topic, wrong(fmt.Sprintf("the list is of topic %s and of topic %s: want a list for each", topic, named))
			}
			topic = named
			continue
		}
		if line == "" || line[0] == '#' {
			continue
		}
		run, err := parseListRun(line)
		if err == nil {
			err = add(run)
		}
		if err != nil {
			return topic, wrong(err.Error())
		}
	}
}

// parseListRun reads a line of a list.
func parseListRun(line string) (ListRun, error) {
	r := ListRun{Count: 1}
	fields := strings.Split(line, ",")
	if len(fields) < 2 || len(fields) > 3 {
		return r, fmt.Errorf("%q is not PARTITION,OFFSET or PARTITION,OFFSET,COUNT", shortened(line))
	}
	part, err := strconv.ParseUint(fields[0], 10, 31)
	if err != nil {
		return r, fmt.Errorf("%q is not a partition: want a number from 0", shortened(fields[0]))
	}
	offset, err := strconv.ParseUint(fields[1], 10, 63)
	if err != nil {
		return r, fmt.Errorf("%q is not an offset: want a number from 0", shortened(fields[1]))
	}
	r.Partition, r.Offset = int32(part), int64(offset)
	if len(fields) == 3 {
		n, err := strconv.ParseUint(fields[2], 10, 63)
		if err != nil || n == 0 {
			return r, fmt.Errorf("%q is not a number of records: want one from 1", shortened(fields[2]))
		}
		r.Count = int64(n)
	}
	if r.Count > math.MaxInt64-r.Offset {
		return r, errors.New("the offset of its last record is above 2^63")
	}
	return r, nil
}

// shortened returns the beginning of a text, for an error.
func shortened(text string) string {
	const most = 60
	if len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
