package host

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// A Tree watches a process and all its descendants. It belongs to one
// goroutine.
//
// Files of /proc are kept open, one for each number needed: reading is one
// system call and allocates no memory, and a reused process id is noticed,
// because a file of the old process can no longer be read. New processes are
// looked for only if the kernel has assigned a process id since the last look.
//
// A process that leaves its parent (a daemon) stays in the tree once it was
// seen. If it left between two looks, it is recognized by the tag in its
// environment, if the tree has one.
//
// The number of an ended process is not read again, even if another process has
// it by then: an open file of /proc belongs to the process and not to the
// number.
type Tree struct {
	root  int
	tag   []byte // "NAME=VALUE" without the end; nil: none
	dir   int    // /proc
	load  int    // /proc/loadavg
	net   int    // /proc/PID/net/dev of the root, -1 if it shares this process's namespace
	begun uint64 // when the root began, in ticks after boot
	since uint64 // for processes from before this, in ticks after boot, earlier use does not count

	members []*member // alive at the last look, in the order they were found
	known   map[int]bool
	others  map[int]uint32 // processes outside the tree, and the round in which each was last seen
	round   uint32
	last    uint64 // process id assigned last
	pending bool   // a new process could not be recognized yet

	total     counters // used since the tree was opened
	peak      uint64
	high      uint64 // largest VmHWM of a process that began within the tree's time
	pss       uint64
	pssAt     time.Time
	netBefore [2]uint64
	name      string
	listed    bool // the size of the directory of descriptors is not their number

	buf   []byte // for one file
	names []byte // for /proc
	fresh []int
	ended []*member
}

// The counters of a process. All except own and faults include the use of children that it
// waited for, which the kernel adds (wait_task_zombie in kernel/exit.c).
const (
	own      = iota // ticks
	children        // ticks
	diskRead
	diskWritten
	read
	written
	faults // page faults that waited for a disk; without those of children
	kinds
)

type counters [kinds]uint64

// A member is one process of the tree, as it was at the last look.
type member struct {
	pid, parent  int
	start        uint64
	stat, io, fd int // descriptors; -1 if the kernel does not allow it
	counts       counters
	// credit is the use of children that was counted while they lived: the
	// kernel adds it again when this process waits for them.
	credit  counters
	next    counters // the values of this look
	threads int
	files   int
	rss     uint64
	zombie  bool
	kernel  bool // a kernel thread
}

// OpenTree begins to watch the process root and its descendants. If tag is not
// empty, they were started with it as the value of TagEnv, and everything they
// ever used counts; otherwise only what they use from now on. The error is
// ErrGone if the process does not exist.
func OpenTree(root int, tag string) (*Tree, error) {
	t := &Tree{
		root: root, dir: -1, load: -1, net: -1,
		known: make(map[int]bool), others: make(map[int]uint32),
		buf: make([]byte, 16<<10), names: make([]byte, 32<<10),
	}
	if tag != "" {
		t.tag = []byte(TagEnv + "=" + tag)
	} else {
		t.since = bootTicks()
	}
	var err error
	if t.dir, err = unix.Open("/proc", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err != nil {
		return nil, fmt.Errorf("open /proc: %w", err)
	}
	if t.load, err = unix.Open("/proc/loadavg", unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
		t.Close()
		return nil, fmt.Errorf("open /proc/loadavg: %w", err)
	}
	if m := t.open(root); m != nil && !m.zombie {
		t.begun = m.start
		t.add(m)
		t.name = comm(root)
		t.openNetwork()
	} else if m != nil {
		m.close()
	}
	t.look(false)
	if !t.Alive() { // with a tag it may have left processes behind
		t.Close()
		return nil, fmt.Errorf("process %d: %w", root, ErrGone)
	}
	return t, nil
}

// RootEnded reports whether the root has ended by now; it costs one system
// call.
func (t *Tree) RootEnded() bool {
	for _, m := range t.members {
		if m.pid == t.root {
			return t.hasEnded(m)
		}
	}
	return true
}

// Ended reports whether all processes that were alive at the last look have
// ended by now.
func (t *Tree) Ended() bool {
	for _, m := range t.members {
		if !t.hasEnded(m) {
			return false
		}
	}
	return true
}

func (t *Tree) hasEnded(m *member) bool {
	s, ok := parseStat(t.file(m.stat))
	return !ok || s.ended()
}

// bootTicks returns the current time in ticks after boot, the unit of
// processes' starts.
func bootTicks() uint64 {
	var now unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &now) != nil {
		return 0
	}
	return uint64(now.Nano()) / uint64(tick)
}

func comm(pid int) string {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
	if err != nil {
		return ""
	}
	return string(bytes.TrimSpace(b))
}

// openNetwork opens the counters of the tree's network namespace, if that is
// not the one of this process.
func (t *Tree) openNetwork() {
	ours, err1 := os.Readlink("/proc/self/ns/net")
	theirs, err2 := os.Readlink("/proc/" + strconv.Itoa(t.root) + "/ns/net")
	if err1 != nil || err2 != nil || ours == theirs {
		return
	}
	if fd, err := unix.Open("/proc/"+strconv.Itoa(t.root)+"/net/dev", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		t.net = fd
		if t.tag == nil {
			t.netBefore[0], t.netBefore[1], _ = interfaces(t.file(fd))
		}
	}
}

// open reads a process for the first time; nil if it is gone.
func (t *Tree) open(pid int) *member {
	fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	m := &member{pid: pid, stat: fd, io: -1, fd: -1}
	if !t.read(m, &m.counts) {
		m.close()
		return nil
	}
	return m
}

// add makes a process a member.
func (t *Tree) add(m *member) {
	dir := "/proc/" + strconv.Itoa(m.pid)
	if fd, err := unix.Open(dir+"/io", unix.O_RDONLY|unix.O_CLOEXEC, 0); err == nil {
		m.io = fd
	}
	if fd, err := unix.Open(dir+"/fd", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0); err == nil {
		m.fd = fd
	}
	t.readIO(m, &m.counts)
	if m.start >= t.since { // it began after the tree was opened: everything counts
		for i, n := range m.counts {
			t.total[i] += n
		}
	}
	t.members = append(t.members, m)
	t.known[m.pid] = true
	delete(t.others, m.pid)
}

func (m *member) close() {
	for _, fd := range [...]int{m.stat, m.io, m.fd} {
		if fd >= 0 {
			unix.Close(fd)
		}
	}
	m.stat, m.io, m.fd = -1, -1, -1
}

// Close ends the watching.
func (t *Tree) Close() {
	for _, m := range t.members {
		m.close()
	}
	t.members = nil
	for _, fd := range [...]*int{&t.dir, &t.load, &t.net} {
		if *fd >= 0 {
			unix.Close(*fd)
			*fd = -1
		}
	}
}

// Name is the root's name in the kernel.
func (t *Tree) Name() string { return t.name }

// Members are the process ids that were alive at the last look.
func (t *Tree) Members() []int {
	out := make([]int, 0, len(t.members))
	for _, m := range t.members {
		out = append(out, m.pid)
	}
	return out
}

// Signal sends TERM or KILL to a member. The number may belong to another
// process by now. So Signal first opens a descriptor of the process
// (pidfd_open(2)) and then checks whether the member still exists: if so, the
// descriptor is the member's. Kernels before 5.3 have no such descriptors.
func (t *Tree) Signal(pid int, kill bool) {
	for _, m := range t.members {
		if m.pid != pid {
			continue
		}
		fd, err := unix.PidfdOpen(pid, 0)
		if err == nil {
			defer unix.Close(fd)
		}
		switch {
		case t.hasEnded(m):
		case errors.Is(err, unix.ENOSYS):
			Signal(pid, kill)
		case err == nil && kill:
			_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
		case err == nil:
			_ = unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
		}
		return
	}
}

// Alive reports whether any process of the tree was alive at the last look.
func (t *Tree) Alive() bool { return len(t.members) > 0 }

// Look reads every member and looks for new ones. A look at a tree of 20 costs
// a fifth of a millisecond.
func (t *Tree) Look() Look { return t.look(false) }

// Final is a last Look before the tree ends, which also reads the numbers that
// are otherwise read once a minute.
func (t *Tree) Final() Look { return t.look(true) }

func (t *Tree) look(expensive bool) Look {
	l := Look{At: time.Now(), OwnNetwork: t.net >= 0}
	expensive = expensive || l.At.Sub(t.pssAt) >= pssInterval
	if expensive {
		t.pss, t.pssAt = 0, l.At
	}
	t.find()
	alive := t.members[:0]
	for _, m := range t.members {
		m.next = m.counts
		if !t.read(m, &m.next) || m.zombie {
			t.ended = append(t.ended, m)
			continue
		}
		alive = append(alive, m)
		t.readIO(m, &m.next)
		t.countFiles(m)
		if expensive {
			t.readExpensive(m)
		}
		l.Processes++
		l.Threads += m.threads
		l.Files += m.files
		l.RSS += m.rss
	}
	clear(t.members[len(alive):])
	t.members = alive
	t.account()
	l.CPU = time.Duration(t.total[own]+t.total[children]) * tick
	l.DiskRead, l.DiskWritten, l.Read, l.Written = t.total[diskRead], t.total[diskWritten], t.total[read], t.total[written]
	l.Faults = t.total[faults]
	t.peak = max(t.peak, l.RSS, t.high)
	l.PSS, l.Peak = t.pss, t.peak
	if t.net >= 0 {
		if b := t.file(t.net); len(b) > 0 {
			in, out, _ := interfaces(b)
			l.Received, l.Sent = in-min(in, t.netBefore[0]), out-min(out, t.netBefore[1])
		}
	}
	return l
}

// account adds the use since the last look. The use of an ended process is
// added to its parent's when the parent waits for it, and must not count twice.
// Later members come first, since a child is found after its parent.
func (t *Tree) account() {
	for _, m := range slices.Backward(t.ended) {
		m.advance(&t.total)
		for _, p := range t.members {
			if p.pid == m.parent {
				p.addCredit(m)
			}
		}
		for _, p := range t.ended {
			if p.pid == m.parent && p != m {
				p.addCredit(m)
			}
		}
		delete(t.known, m.pid)
		m.close()
	}
	clear(t.ended)
	t.ended = t.ended[:0]
	for _, m := range t.members {
		m.advance(&t.total)
	}
}

// addCredit notes the counted use of a child that ended.
func (m *member) addCredit(child *member) {
	m.credit[children] += child.counts[own] + child.counts[children] + child.credit[children]
	for i := children + 1; i < faults; i++ {
		m.credit[i] += child.counts[i] + child.credit[i]
	}
}

// advance adds to total the member's use since the last look.
func (m *member) advance(total *counters) {
	for i := range m.next {
		more := m.next[i] - min(m.next[i], m.counts[i])
		known := min(more, m.credit[i])
		m.credit[i] -= known
		total[i] += more - known
		m.counts[i] = max(m.counts[i], m.next[i])
	}
}

// file reads a small file that is kept open; the result is valid until the
// next call.
func (t *Tree) file(fd int) []byte {
	n, err := unix.Pread(fd, t.buf, 0)
	if err != nil || n <= 0 {
		return nil
	}
	return t.buf[:n]
}

// read reads a member's state; false when it is gone.
func (t *Tree) read(m *member, c *counters) bool {
	s, ok := parseStat(t.file(m.stat))
	if !ok {
		return false
	}
	m.parent, m.start, m.threads = s.parent, s.start, s.threads
	c[own], c[children] = s.user+s.sys, s.childUser+s.childSys
	c[faults] = s.faults
	m.rss = s.rss * pageSize
	m.zombie, m.kernel = s.ended(), s.virtual == 0
	return true
}

var pageSize = uint64(os.Getpagesize())

func (t *Tree) readIO(m *member, c *counters) {
	if m.io < 0 {
		return
	}
	b := t.file(m.io)
	for i, name := range [...]string{diskRead: "read_bytes:", diskWritten: "write_bytes:", read: "rchar:", written: "wchar:"} {
		if name == "" {
			continue
		}
		if n, ok := numberAfter(b, name); ok {
			c[i] = n
		}
	}
}

// countFiles reads the size of the directory of descriptors, which since Linux
// 6.2 is their number; on older kernels it counts the entries.
func (t *Tree) countFiles(m *member) {
	if m.fd < 0 {
		return
	}
	if !t.listed {
		var st unix.Stat_t
		if unix.Fstat(m.fd, &st) == nil && st.Size > 0 {
			m.files = int(st.Size)
			return
		}
	}
	m.files = 0
	t.list(m.fd, func([]byte) { m.files++ })
	t.listed = t.listed || m.files > 0
}

// readExpensive reads the numbers that are expensive for the process or for
// this one.
func (t *Tree) readExpensive(m *member) {
	dir := "/proc/" + strconv.Itoa(m.pid)
	if b := t.readFile(dir + "/smaps_rollup"); b != nil {
		if n, ok := numberAfter(b, "Pss:"); ok {
			t.pss += n << 10
		}
	}
	if m.start < t.since {
		return // its high-water mark may be from before the tree was opened
	}
	if b := t.readFile(dir + "/status"); b != nil {
		if n, ok := numberAfter(b, "VmHWM:"); ok {
			t.high = max(t.high, n<<10)
		}
	}
}

func (t *Tree) readFile(name string) []byte {
	fd, err := unix.Open(name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	return t.file(fd)
}
