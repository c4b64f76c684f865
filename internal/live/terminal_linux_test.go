package live

import (
	"fmt"
	"os"
	"testing"

	"carronade/test/testkit/assert"

	"golang.org/x/sys/unix"
)

// openTerminal returns the terminal side of a new pseudo terminal.
func openTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	far := assert.Value(os.OpenFile("/dev/ptmx", os.O_RDWR, 0))(t)
	t.Cleanup(func() { far.Close() })
	fd := int(far.Fd())
	n := assert.Value(unix.IoctlGetInt(fd, unix.TIOCGPTN))(t)
	assert.OK(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	assert.OK(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	near := assert.Value(os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0))(t)
	t.Cleanup(func() { near.Close() })
	return near
}

func TestDetectTerminal(t *testing.T) {
	f := openTerminal(t, 97)
	for _, tt := range []struct {
		name           string
		env            map[string]string
		rewrite, color bool
	}{
		{"a terminal", map[string]string{"TERM": "xterm-256color"}, true, true},
		{"without color", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false},
		{"a dumb one", map[string]string{"TERM": "dumb"}, false, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := Detect(f, func(k string) string { return tt.env[k] })
			assert.True(t, got.Rewrite == tt.rewrite && got.Color == tt.color,
				"got rewrite %v and color %v, want %v and %v", got.Rewrite, got.Color, tt.rewrite, tt.color)
			assert.Equal(t, got.Columns(), 97, "columns")
		})
	}
}
