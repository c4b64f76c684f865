package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"testing"

	"carronade/test/testkit/assert"
)

func TestReason(t *testing.T) {
	missing := &fs.PathError{Op: "open", Path: "nothing", Err: syscall.ENOENT}
	bare := errors.New("bare")
	for _, test := range []struct {
		name      string
		err, want error
	}{
		{"a path's", missing, syscall.ENOENT},
		{"a path's, wrapped", fmt.Errorf("read it: %w", missing), syscall.ENOENT},
		{"a call's", os.NewSyscallError("pipe2", syscall.EMFILE), syscall.EMFILE},
		{"neither", bare, bare},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := Reason(test.err)
			assert.True(t, errors.Is(got, test.want) && got.Error() == test.want.Error(), "got %v, want %v", got, test.want)
		})
	}
}
