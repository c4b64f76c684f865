package system

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// ListenerOf returns the process that accepts TCP connections at a port of this machine. Of
// processes of other users that is visible only to an administrator.
func ListenerOf(port int) (int, error) {
	sockets := map[string]bool{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if err := listening(path, port, sockets); err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
	}
	if len(sockets) == 0 {
		return 0, fmt.Errorf("nothing listens at port %d of this machine", port)
	}
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, err
	}
	for _, dir := range all {
		files, err := os.ReadDir(dir + "/fd")
		if err != nil {
			continue // it has ended, or belongs to another user
		}
		for _, f := range files {
			to, err := os.Readlink(dir + "/fd/" + f.Name())
			if err != nil || !sockets[to] {
				continue
			}
			return strconv.Atoi(filepath.Base(dir))
		}
	}
	return 0, fmt.Errorf("the process that listens at port %d: %w", port, ErrNotPermitted)
}

// listening adds the sockets of a table of /proc/net that listen at a port, as links to them are
// named.
func listening(path string, port int, sockets map[string]bool) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const listen = "0A" // the state, as in include/net/tcp_states.h
	for s := bufio.NewScanner(f); s.Scan(); {
		c := strings.Fields(s.Text())
		if len(c) < 10 || c[3] != listen {
			continue
		}
		_, at, _ := strings.Cut(c[1], ":")
		if n, err := strconv.ParseUint(at, 16, 16); err == nil && int(n) == port {
			sockets["socket:["+c[9]+"]"] = true
		}
	}
	return nil
}
