package host

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// ListenerOf returns the process that accepts TCP connections at a port of this machine, at one of
// some addresses or at all. Of processes of other users that is visible only to an administrator.
func ListenerOf(ips []net.IP, port int) (int, error) {
	own, every := map[string]bool{}, map[string]bool{}
	for _, path := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		err := listening(path, port, func(at net.IP, socket string) {
			switch {
			case slices.ContainsFunc(ips, at.Equal):
				own[socket] = true
			case at.IsUnspecified():
				every[socket] = true
			}
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return 0, err
		}
	}
	sockets := own
	if len(own) == 0 {
		sockets = every
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

// listening passes on the sockets of a table of /proc/net that listen at a port: their addresses,
// and their names as links to them have them.
func listening(path string, port int, found func(at net.IP, socket string)) error {
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
		host, at, _ := strings.Cut(c[1], ":")
		if n, err := strconv.ParseUint(at, 16, 16); err == nil && int(n) == port {
			found(addressOf(host), "socket:["+c[9]+"]")
		}
	}
	return nil
}

// addressOf reads an address of /proc/net/tcp: words of 32 bits in the order of the processor. It
// is nil for something else.
func addressOf(text string) net.IP {
	b, err := hex.DecodeString(text)
	if err != nil || len(b)%4 != 0 {
		return nil
	}
	for i := 0; i < len(b); i += 4 {
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	return b
}
