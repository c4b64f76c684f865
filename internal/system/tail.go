package system

import (
	"strings"
	"sync"
)

// keptLines is how many of a system's last lines are kept, and maxLine how many
// bytes of each are shown.
const (
	keptLines = 20
	maxLine   = 1000
)

// A tail keeps the last lines of a system's output, and looks for one text. It
// is safe for concurrent use. Lines are kept unmasked: they are masked only
// when they are returned, which costs nothing while the system runs.
type tail struct {
	mu    sync.Mutex
	lines [keptLines]string
	n     int
	want  string        // the text to look for; "" if none, or if it was found
	found chan struct{} // closed when it was found
}

func newTail(want string) *tail {
	return &tail{want: want, found: make(chan struct{})}
}

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.want != "" && strings.Contains(line, t.want) {
		t.want = ""
		close(t.found)
	}
	t.lines[t.n%keptLines] = line
	t.n++
}

// last returns the last lines, oldest first, masked.
func (t *tail) last(n int, mask func(string) string) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	n = min(n, keptLines, t.n)
	out := make([]string, 0, n)
	for i := t.n - n; i < t.n; i++ {
		line := mask(t.lines[i%keptLines])
		if len(line) > maxLine { // only now: part of a secret would not be recognized
			line = strings.ToValidUTF8(line[:maxLine], "") + "..."
		}
		out = append(out, line)
	}
	return out
}
