package host

import (
	"errors"
	"io/fs"
	"os"
)

// Reason returns only the cause of a file's error, without the operation and
// the path, which the message already has.
func Reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if call, ok := errors.AsType[*os.SyscallError](err); ok {
		return call.Err
	}
	return err
}
