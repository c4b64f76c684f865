package shell

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Lines that tail shows.
const (
	tailLines = 10
	mostTail  = 1000
	tailBytes = 10 << 20 // of the log's end
)

// tail shows the last lines of the log of the server that was started last, or those
// of them with a text.
func (s *session) tail(kind string, args []string) error {
	n, pattern := tailLines, ""
	for i := 0; i < len(args); i++ {
		a := args[i]
		number, dash := strings.CutPrefix(a, "-")
		switch {
		case a == "-n" && i+1 < len(args):
			i++
			number = args[i]
		case a == "-n":
			return s.usage([]string{kind})
		case !dash:
			if pattern != "" {
				return s.usage([]string{kind})
			}
			pattern = a
			continue
		}
		k, err := strconv.Atoi(strings.TrimPrefix(number, "n"))
		if err != nil || k < 1 {
			return fmt.Errorf("%s is not a number of lines", cut(number, 30))
		}
		n = min(k, mostTail)
	}
	data, err := logEnd(s.logOf(kind))
	if errors.Is(err, fs.ErrNotExist) {
		return hinted(errors.New("no server was started in this shell yet, so it has no log"), "carronade report log last shows that of another run")
	}
	if err != nil {
		return err
	}
	var lines []string
	for l := range bytes.Lines(data) {
		if bytes.Contains(l, []byte(pattern)) {
			lines = append(lines, string(bytes.TrimRight(l, "\r\n")))
		}
	}
	for _, l := range lines[max(0, len(lines)-n):] {
		text := Printable(strings.ReplaceAll(l, "\t", " "))
		switch {
		case strings.Contains(l, "ERROR"), strings.Contains(l, "Error:"):
			text = s.out.paint(red, text)
		case strings.Contains(l, "WARN"):
			text = s.out.paint(yellow, text)
		}
		s.say("%s", text)
	}
	s.say("%s", s.out.paint(grey, "[time now "+time.Now().UTC().Format(time.RFC3339)+"]"))
	return nil
}

// logOf is the file with what a system prints while it runs, see --system-log.
func (s *session) logOf(kind string) string { return filepath.Join(s.home.dir, kind+".log") }

// logEnd reads the end of a log, of which an earlier part may be in FILE.1.
func logEnd(name string) ([]byte, error) {
	last, err := fileEnd(name)
	if err != nil {
		return nil, err
	}
	before, _ := fileEnd(name + ".1") // most logs have none
	return append(before, last...), nil
}

func fileEnd(name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, st.Size()-tailBytes), tailBytes))
}
