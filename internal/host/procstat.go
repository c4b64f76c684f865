package host

import "bytes"

// The following functions parse the kernel's text about one process without
// allocating: it is read for every process of a tree at every look.

// A procStat has the fields of /proc/PID/stat (proc_pid_stat(5)), times in
// ticks.
type procStat struct {
	state               byte
	parent              int
	threads             int
	faults              uint64 // that waited for a disk
	user, sys           uint64
	childUser, childSys uint64 // of children that it waited for
	start               uint64 // after boot
	virtual             uint64 // bytes; 0 for a kernel thread
	rss                 uint64 // in pages
}

// ended reports whether the process is a zombie or dead.
func (s *procStat) ended() bool { return s.state == 'Z' || s.state == 'X' }

// parseStat reads a line of /proc/PID/stat. The name in it may contain
// anything, also parentheses and line ends, so the fields begin after the last
// ')'.
func parseStat(b []byte) (s procStat, ok bool) {
	i := bytes.LastIndexByte(b, ')')
	if i < 0 || i+2 >= len(b) {
		return s, false
	}
	b = b[i+2:]
	s.state = b[0]
	b = b[1:]
	for field := 4; field <= 24; field++ {
		n, rest, ok := number(b)
		if !ok {
			return s, false
		}
		b = rest
		switch field {
		case 4:
			s.parent = int(n)
		case 12:
			s.faults = n
		case 14:
			s.user = n
		case 15:
			s.sys = n
		case 16:
			s.childUser = n
		case 17:
			s.childSys = n
		case 20:
			s.threads = int(n)
		case 22:
			s.start = n
		case 23:
			s.virtual = n
		case 24:
			s.rss = n
		}
	}
	return s, true
}

// number reads the next number of b, 0 for a negative one.
func number(b []byte) (n uint64, rest []byte, ok bool) {
	i := 0
	for i < len(b) && (b[i] == ' ' || b[i] == '\t') {
		i++
	}
	negative := i < len(b) && b[i] == '-'
	if negative {
		i++
	}
	start := i
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	if negative {
		n = 0
	}
	return n, b[i:], i > start
}

// numberAfter finds a line that begins with name, and its first number.
func numberAfter(b []byte, name string) (uint64, bool) {
	for l := range bytes.Lines(b) {
		if len(l) >= len(name) && string(l[:len(name)]) == name {
			n, _, ok := number(l[len(name):])
			return n, ok
		}
	}
	return 0, false
}

// lastNumber returns the last number of a text, such as the last process id in
// /proc/loadavg.
func lastNumber(b []byte) (n uint64, ok bool) {
	b = bytes.TrimRight(b, " \n")
	n, _, ok = number(b[bytes.LastIndexByte(b, ' ')+1:])
	return n, ok
}

// interfaces sums the bytes received and sent through the interfaces of
// /proc/PID/net/dev, the loopback separately.
func interfaces(b []byte) (received, sent, loopback uint64) {
	for l := range bytes.Lines(b) {
		name, l, ok := bytes.Cut(l, []byte{':'})
		if !ok {
			continue // the headings
		}
		var in, out uint64
		for column := range 9 {
			n, rest, ok := number(l)
			if !ok {
				break
			}
			l = rest
			switch column {
			case 0:
				in = n
			case 8:
				out = n
			}
		}
		if string(bytes.TrimLeft(name, " ")) == "lo" {
			loopback += in
			continue
		}
		received, sent = received+in, sent+out
	}
	return received, sent, loopback
}
