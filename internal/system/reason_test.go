package system

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"
)

func TestReason(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "nothing", Err: syscall.ENOENT}
	bare := errors.New("bare")
	tests := []struct {
		name string
		err  error
		want error
	}{
		{"a path's", missing, syscall.ENOENT},
		{"a path's, wrapped", fmt.Errorf("read it: %w", missing), syscall.ENOENT},
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
