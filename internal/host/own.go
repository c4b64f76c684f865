package host

import (
	"errors"
	"net"
	"os"
)

// removeAbandoned removes a socket that a program left behind. A socket that a program listens on
// is an error, and so is another file.
func removeAbandoned(path string) error {
	info, err := os.Lstat(path)
	if err != nil {
		return nil //nolint:nilerr // mostly there is none; any other fault is one of listening, too
	}
	if info.Mode()&os.ModeSocket == 0 {
		return errors.New("a file of that name exists")
	}
	conn, err := net.Dial("unix", path)
	if err == nil {
		conn.Close()
		return errors.New("another program listens there")
	}
	if !IsRefused(err) {
		return err
	}
	return os.Remove(path)
}
