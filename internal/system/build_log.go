package system

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"carronade/internal/host"
)

// Limits of a build's stored output, in bytes: of its beginning, and of its end if the
// beginning is not all. The end may have up to twice as much.
const (
	maxLog = 16 << 20
	logEnd = 1 << 20
)

// A buildLog writes the beginning of a build's output to a file, and its end when the
// build is done.
type buildLog struct {
	out     *bufio.Writer
	head    int64  // the limit of the beginning
	printed int64  // bytes of all lines
	last    output // after the beginning
}

func newBuildLog(w io.Writer, head, end int) *buildLog {
	return &buildLog{out: bufio.NewWriter(w), head: int64(head), last: output{most: end}}
}

// add adds a line. finish returns the error of writing.
func (l *buildLog) add(line string) {
	l.printed += int64(len(line)) + 1
	if l.printed <= l.head {
		_, _ = l.out.WriteString(line + "\n")
		return
	}
	l.last.add(line)
}

// finish writes what is left.
func (l *buildLog) finish() error {
	if l.last.cut > 0 {
		fmt.Fprintf(l.out, "... %d bytes, not kept ...\n", l.last.cut)
	}
	_, _ = l.out.Write(l.last.buf)
	return l.out.Flush()
}

// mostBuildOutput is the most that output returns, in bytes.
const mostBuildOutput = logEnd

// output returns the end of what the build has printed, in whole lines, and how many bytes
// came before it. The secrets that were known to the build are hidden. The text is empty if
// nothing was built or printed. It must not be called after Release.
func (b *Build) output() (text []byte, cut int64, err error) {
	f, err := os.Open(b.Log)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil // no command
	}
	if err != nil {
		return nil, 0, readsOutput(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, 0, readsOutput(err)
	}
	// One byte more: with an end of a line there, no line is shortened.
	from := max(0, st.Size()-mostBuildOutput-1)
	data, err := io.ReadAll(io.NewSectionReader(f, from, st.Size()-from))
	if err != nil {
		return nil, 0, readsOutput(err)
	}
	if from > 0 {
		data = data[bytes.IndexByte(data, '\n')+1:]
	}
	return data, max(b.printed, st.Size()) - int64(len(data)), nil
}

func readsOutput(err error) error {
	return fmt.Errorf("read the output of the build: %w", host.Reason(err))
}
