package host

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"golang.org/x/sys/unix"
)

// find looks for new members, if any process or thread was started on this
// machine since the last look.
func (t *Tree) find() {
	last, ok := lastNumber(t.file(t.load))
	if ok && last == t.last && t.round > 0 && !t.pending {
		return
	}
	t.last, t.pending = last, false
	t.round++
	t.fresh = t.fresh[:0]
	seen := 0
	t.list(t.dir, func(name []byte) {
		n, _, _ := number(name)
		pid := int(n)
		seen++
		if t.known[pid] {
			return
		}
		if _, ok := t.others[pid]; ok {
			t.others[pid] = t.round
			return
		}
		t.fresh = append(t.fresh, pid)
	})
	// A parent may come after its child, if the process ids have wrapped
	// around.
	for again := true; again; {
		again = false
		for i, pid := range t.fresh {
			if pid == 0 {
				continue
			}
			m := t.open(pid)
			switch {
			case m == nil || m.zombie:
				if m != nil {
					m.close()
				}
			case t.known[m.parent]:
				t.add(m)
				again = true
			default:
				tagged, sure := false, true
				if m.start >= t.begun {
					tagged, sure = t.tagged(pid)
				}
				if tagged {
					t.add(m)
					again = true
					break
				}
				m.close()
				if sure || m.kernel {
					continue
				}
				t.pending = true // and is checked again
			}
			t.fresh[i] = 0
		}
	}
	for _, pid := range t.fresh {
		if pid != 0 {
			t.others[pid] = t.round
		}
	}
	if len(t.others) > 2*seen+64 {
		for pid, round := range t.others {
			if round != t.round {
				delete(t.others, pid)
			}
		}
	}
}

// tagged reports whether a process has the tree's tag in its environment. It is
// not sure while a process executes another program: it has no environment for
// a moment.
func (t *Tree) tagged(pid int) (yes, sure bool) {
	if t.tag == nil {
		return false, true
	}
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/environ", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, true // of another user, so not of the tree
	}
	defer unix.Close(fd)
	for at := int64(0); ; {
		n, err := unix.Pread(fd, t.buf, at)
		if err != nil || n <= 0 {
			return false, at > 0
		}
		if bytes.Contains(t.buf[:n], t.tag) {
			return true, true
		}
		if n < len(t.buf) {
			return false, true
		}
		at += int64(n - len(t.tag)) // the tag may cross the end of the buffer
	}
}

// list calls f with every name in a directory of /proc that is a number.
func (t *Tree) list(dir int, f func(name []byte)) bool {
	if _, err := unix.Seek(dir, 0, 0); err != nil {
		return false
	}
	for {
		n, err := unix.Getdents(dir, t.names)
		if err != nil {
			return false
		}
		if n <= 0 {
			return true
		}
		// struct linux_dirent64: inode, offset, length (16 bits at 16), type, name.
		for b := t.names[:n]; len(b) > 19; {
			length := int(binary.NativeEndian.Uint16(b[16:]))
			if length <= 19 || length > len(b) {
				return false
			}
			name := b[19:length]
			if i := bytes.IndexByte(name, 0); i > 0 && name[0] >= '0' && name[0] <= '9' {
				f(name[:i])
			}
			b = b[length:]
		}
	}
}
