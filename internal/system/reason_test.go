package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestReason(t *testing.T) {
	_, missing := os.Open(filepath.Join(t.TempDir(), "nothing"))
	bare := errors.New("bare")
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"a path's", missing, missing.(*fs.PathError).Err},
		{"a path's behind words", fmt.Errorf("read it: %w", missing), missing.(*fs.PathError).Err},
		{"a call's", os.NewSyscallError("pipe2", syscall.EMFILE), syscall.EMFILE},
		{"neither", bare, bare},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := Reason(test.err); !errors.Is(got, test.want) || got.Error() != test.want.Error() {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}
