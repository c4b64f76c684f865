package live

import (
	"fmt"
	"os"
	"testing"

	"carronade/internal/testkit/assert"

	"golang.org/x/sys/unix"
)

// openTerminal returns the terminal side of a new pseudo terminal.
func openTerminal(t *testing.T, columns uint16) *os.File {
	t.Helper()
	far, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	assert.OK(t, err)
	t.Cleanup(func() { far.Close() })
	fd := int(far.Fd())
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	assert.OK(t, err)
	assert.OK(t, unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0))
	assert.OK(t, unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns}))
	near, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	assert.OK(t, err)
	t.Cleanup(func() { near.Close() })
	return near
}

func TestDetectTerminal(t *testing.T) {
	f := openTerminal(t, 97)
	tests := []struct {
		name           string
		env            map[string]string
		rewrite, color bool
	}{
		{"a terminal", map[string]string{"TERM": "xterm-256color"}, true, true},
		{"without color", map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, true, false},
		{"a dumb one", map[string]string{"TERM": "dumb"}, false, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Detect(f, func(k string) string { return tt.env[k] })
			if got.Rewrite != tt.rewrite || got.Color != tt.color {
				t.Errorf("got rewrite %v and color %v, want %v and %v", got.Rewrite, got.Color, tt.rewrite, tt.color)
			}
			assert.Equal(t, got.Columns(), 97, "columns")
		})
	}
}
