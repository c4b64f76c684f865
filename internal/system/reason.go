package system

import (
	"errors"
	"io/fs"
	"os"
)

// Reason is the cause of a file's error alone, without what was called and
// with which path: that was said before.
func Reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}
