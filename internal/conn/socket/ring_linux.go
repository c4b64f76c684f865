package socket

import (
	"errors"
	"fmt"
	"math/bits"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A Ring is one io_uring: sends, receives and waits on many sockets with one system call a
// round. It belongs to the thread that made it: the kernel accepts calls only from that
// thread, and in return does its work when the thread asks for completions, instead of
// interrupting it. Every submission is either queued or with the kernel, and each one with
// the kernel ends with a completion without More.
//
// The interface is that of io_uring_setup(2), io_uring_enter(2), io_uring_register(2) and
// linux/io_uring.h; Linux 6.1 supports all of it.
type Ring struct {
	fd  int
	mem []byte // heads and tails of the rings, and the completions
	ops []byte // the submissions

	sqHead, sqTail *uint32 // written by the kernel, by us
	cqHead, cqTail *uint32 // written by us, by the kernel
	subs           []submission
	comps          []completion
	tail           uint32      // of submissions: end of those made
	queued         uint32      // number of submissions not yet passed to the kernel
	head           uint32      // of completions: end of those taken
	keepAlive      [][]byte    // the bytes of queued sends, to keep them alive
	message        unix.Msghdr // of Recv: defines the room for control messages
	wait           argument
	until          unix.Timespec // argument of wait

	bufs buffers
}

// A submission is struct io_uring_sqe.
type submission struct {
	op, flags uint8
	prio      uint16
	fd        int32
	off, addr uint64
	size      uint32
	opFlags   uint32
	tag       uint64
	group     uint16
	_         [22]byte
}

// A completion is struct io_uring_cqe.
type completion struct {
	tag   uint64
	res   int32
	flags uint32
}

// An argument is struct io_uring_getevents_arg.
type argument struct {
	mask    uint64
	maskLen uint32
	_       uint32
	until   uint64
}

// parameters is struct io_uring_params.
type parameters struct {
	subs, comps, flags, cpu, idle, features, wq uint32
	_                                           [3]uint32
	sub                                         struct {
		head, tail, mask, entries, flags, dropped, array, _ uint32
		_                                                   uint64
	}
	comp struct {
		head, tail, mask, entries, overflow, entry, flags, _ uint32
		_                                                    uint64
	}
}

// Numbers of linux/io_uring.h.
const (
	opPollAdd     = 6
	opRecvmsg     = 10
	opAsyncCancel = 14
	opSend        = 26

	setupCompSize     = 1 << 3 // the number of completions is set
	setupSubmitAll    = 1 << 7 // a failed submission does not block the following ones
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13 // the kernel does its work when we wait

	featSingleMmap = 1 << 0
	featExtArg     = 1 << 8

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	withBuffer     = 1 << 5 // the kernel selects a buffer of a group
	recvMultishot  = 1 << 1
	pollMultishot  = 1 << 0
	cancelAll      = 1 << 0
	cancelAny      = 1 << 2
	hasBuffer      = 1 << 0
	hasMore        = 1 << 1
	registerBuffer = 22

	offsetSubs = 0x10000000
)

const (
	submissions = 256
	completions = 4096 // above this number the kernel uses a slower list
)

// NewRing returns a ring with the given number of buffers (rounded up to a power of two; 0:
// none). Each has room for size bytes that Recv receives, and for control bytes of the
// control messages, such as timestamps, that come with them. The goroutine must be
// locked to its thread until Close. On a system that does not support a ring or allow it,
// it fails, and the caller must use another method.
func NewRing(buffers, size, control int) (*Ring, error) {
	p := parameters{flags: setupCompSize | setupSubmitAll | setupSingleIssuer | setupDeferTaskrun, comps: completions}
	fd, _, e := syscall.Syscall(unix.SYS_IO_URING_SETUP, submissions, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, fmt.Errorf("set up an io_uring: %w", e)
	}
	r := &Ring{fd: int(fd)}
	if err := r.mapShared(&p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.message.SetControllen(control)
	if err := r.bufs.make(r.fd, buffers, messageHead+control+size); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// mapShared maps the memory that is shared with the kernel.
func (r *Ring) mapShared(p *parameters) (err error) {
	if p.features&featSingleMmap == 0 || p.features&featExtArg == 0 {
		return fmt.Errorf("set up an io_uring: %w", syscall.ENOSYS)
	}
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_SHARED | unix.MAP_POPULATE
	size := max(p.sub.array+4*p.subs, p.comp.entry+p.comps*uint32(unsafe.Sizeof(completion{})))
	if r.mem, err = unix.Mmap(r.fd, 0, int(size), prot, flags); err != nil {
		return fmt.Errorf("map an io_uring: %w", err)
	}
	if r.ops, err = unix.Mmap(r.fd, offsetSubs, int(p.subs)*int(unsafe.Sizeof(submission{})), prot, flags); err != nil {
		return fmt.Errorf("map an io_uring: %w", err)
	}
	at := func(offset uint32) *uint32 { return (*uint32)(unsafe.Pointer(&r.mem[offset])) }
	r.sqHead, r.sqTail = at(p.sub.head), at(p.sub.tail)
	r.cqHead, r.cqTail = at(p.comp.head), at(p.comp.tail)
	r.tail, r.head = *r.sqTail, *r.cqHead
	for i := range p.subs { // submissions are taken in the order of their indices
		*at(p.sub.array + 4*i) = i
	}
	r.subs = unsafe.Slice((*submission)(unsafe.Pointer(&r.ops[0])), p.subs)
	r.comps = unsafe.Slice((*completion)(unsafe.Pointer(&r.mem[p.comp.entry])), p.comps)
	r.keepAlive = make([][]byte, p.subs)
	return nil
}

// Close releases everything. Submissions that are still with the kernel are canceled
// without a completion.
func (r *Ring) Close() error {
	var errs []error
	for _, m := range [][]byte{r.mem, r.ops} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	r.mem, r.ops = nil, nil
	errs = append(errs, unix.Close(r.fd), r.bufs.free())
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close an io_uring: %w", err)
	}
	return nil
}

// Send queues one send of what the socket accepts at once. Its completion is available
// when the next Enter returns: the number of bytes accepted, or syscall.EAGAIN. The
// bytes must not change until then.
func (r *Ring) Send(fd int, p []byte, tag uint64) {
	i, s := r.next()
	s.op, s.fd, s.tag = opSend, int32(fd), tag
	s.addr, s.size = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p))
	s.opFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	r.keepAlive[i] = p
}

// Recv queues receiving into the ring's buffers, whenever there is data, until a
// completion comes without More. If that completion has syscall.ENOBUFS, all buffers
// were in use, and Recv must be called again. One without Err and Data means that the
// other side closed the connection.
func (r *Ring) Recv(fd int, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag = opRecvmsg, int32(fd), tag
	s.flags, s.prio = withBuffer, recvMultishot
	s.addr, s.size = uint64(uintptr(unsafe.Pointer(&r.message))), 1
}

// messageHead is the size of struct io_uring_recvmsg_out, which precedes what Recv
// receives: lengths of the name, of the control message and of the payload, and flags.
const messageHead = 16

// Watch queues a report of the readiness of a descriptor (unix.POLLIN, unix.POLLOUT):
// once, or whenever it changes.
func (r *Ring) Watch(fd int, events uint32, again bool, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag, s.opFlags = opPollAdd, int32(fd), tag, events
	if again {
		s.size = pollMultishot
	}
}

// Cancel queues the cancellation of one submission with the kernel, which is found by its
// tag. The cancellation has a tag of its own, and a completion.
func (r *Ring) Cancel(canceled, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag, s.addr = opAsyncCancel, -1, tag, canceled
}

// CancelAll queues the cancellation of all submissions with the kernel.
func (r *Ring) CancelAll(tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag, s.opFlags = opAsyncCancel, -1, tag, cancelAll|cancelAny
}

// Full reports that the next submission first passes all queued ones to the kernel.
func (r *Ring) Full() bool { return r.queued == uint32(len(r.subs)) }

// next returns the next free submission.
func (r *Ring) next() (i uint32, s *submission) {
	for r.queued == uint32(len(r.subs)) {
		_ = r.Enter(0, 0, true) // full: the kernel takes them, unless it is temporarily out of memory
	}
	i = r.tail & uint32(len(r.subs)-1)
	r.tail++
	r.queued++
	s = &r.subs[i]
	*s = submission{}
	return i, s
}

// Enter passes the queued submissions to the kernel and waits for the given number of
// completions, at most for the given time (below 0: no limit). raw: hide the call from
// the Go scheduler, which is right for a thread with its own scheduler processor. The
// result is 0, syscall.ETIME, syscall.EINTR, or an error after which Enter may be
// called again: syscall.EBUSY once completions were taken, syscall.EAGAIN a little
// later. It is 0 if any submission was passed, even if the wait ended early.
func (r *Ring) Enter(wait int, most time.Duration, raw bool) syscall.Errno {
	atomic.StoreUint32(r.sqTail, r.tail)
	call := syscall.Syscall6
	if raw {
		call = syscall.RawSyscall6
	}
	arg, size, flags := unsafe.Pointer(nil), uintptr(0), uintptr(enterGetEvents)
	if wait > 0 && most >= 0 {
		r.until = unix.NsecToTimespec(int64(most))
		r.wait = argument{until: uint64(uintptr(unsafe.Pointer(&r.until)))}
		arg, size, flags = unsafe.Pointer(&r.wait), unsafe.Sizeof(r.wait), flags|enterExtArg
	}
	_, _, e := call(unix.SYS_IO_URING_ENTER, uintptr(r.fd), uintptr(r.queued), uintptr(wait), flags, uintptr(arg), size)
	r.queued = r.tail - atomic.LoadUint32(r.sqHead)
	return e
}

// A Completion is a result of a submission.
type Completion struct {
	Tag  uint64
	N    int           // bytes, or events that are ready
	Err  syscall.Errno // 0: none
	More bool          // more completions of the same submission follow

	// Data is what was received, and Control the control messages that came with it.
	// Both belong to the ring and must be returned by Release.
	Data    []byte
	Control []byte
	buffer  uint16
	owed    bool // the buffer must be returned
}

// Ready returns the number of completions that can be taken.
func (r *Ring) Ready() int { return int(atomic.LoadUint32(r.cqTail) - r.head) }

// Next returns the next completion; false if there is none.
func (r *Ring) Next() (c Completion, ok bool) {
	if r.head == atomic.LoadUint32(r.cqTail) {
		return c, false
	}
	e := &r.comps[r.head&uint32(len(r.comps)-1)]
	c.Tag, c.More = e.tag, e.flags&hasMore != 0
	if e.res < 0 {
		c.Err = syscall.Errno(-e.res)
	} else {
		c.N = int(e.res)
	}
	if e.flags&hasBuffer != 0 {
		c.buffer, c.owed = uint16(e.flags>>16), true
		c.separate(r.bufs.at(c.buffer)[:c.N], int(r.message.Controllen))
	}
	r.head++
	atomic.StoreUint32(r.cqHead, r.head)
	return c, true
}

// separate splits what was received, with room bytes for control messages.
func (c *Completion) separate(b []byte, room int) {
	c.N = 0
	if len(b) < messageHead+room {
		return
	}
	filled := *(*uint32)(unsafe.Pointer(&b[4]))
	c.Control = b[messageHead:][:min(int(filled), room)]
	if b = b[messageHead+room:]; len(b) > 0 {
		c.Data, c.N = b, len(b)
	}
}

// Release returns the buffer of a completion, if it has one.
func (r *Ring) Release(c *Completion) {
	if c.owed {
		c.Data, c.Control, c.owed = nil, nil, false
		r.bufs.put(c.buffer)
		r.bufs.publish()
	}
}

// buffers is a ring of buffers from which the kernel takes one for each piece that it
// receives, so that idle connections need none.
type buffers struct {
	ring []byte // of struct io_uring_buf; the first one contains the tail
	mem  []byte
	size int
	mask uint16
	tail uint16
}

const bufferEntry = 16 // bytes of struct io_uring_buf: address, length, number, tail

func (b *buffers) make(fd, count, size int) (err error) {
	if count == 0 {
		return nil
	}
	count = 1 << bits.Len(uint(max(count, 1)-1))
	b.size, b.mask = size, uint16(count-1)
	const prot, flags = unix.PROT_READ | unix.PROT_WRITE, unix.MAP_PRIVATE | unix.MAP_ANONYMOUS
	if b.ring, err = unix.Mmap(-1, 0, count*bufferEntry, prot, flags); err != nil {
		return fmt.Errorf("make buffers for an io_uring: %w", err)
	}
	if b.mem, err = unix.Mmap(-1, 0, count*size, prot, flags); err != nil {
		return fmt.Errorf("make buffers for an io_uring: %w", err)
	}
	reg := struct {
		addr    uint64
		entries uint32
		group   uint16
		flags   uint16
		_       [3]uint64
	}{addr: uint64(uintptr(unsafe.Pointer(&b.ring[0]))), entries: uint32(count)}
	if _, _, e := syscall.Syscall6(unix.SYS_IO_URING_REGISTER, uintptr(fd), registerBuffer, uintptr(unsafe.Pointer(&reg)), 1, 0, 0); e != 0 {
		return fmt.Errorf("register buffers with an io_uring: %w", e)
	}
	for i := range count {
		b.put(uint16(i))
	}
	b.publish()
	return nil
}

func (b *buffers) free() error {
	var errs []error
	for _, m := range [][]byte{b.ring, b.mem} {
		if m != nil {
			errs = append(errs, unix.Munmap(m))
		}
	}
	b.ring, b.mem = nil, nil
	return errors.Join(errs...)
}

func (b *buffers) at(n uint16) []byte { return b.mem[int(n)*b.size:][:b.size] }

// put adds a buffer after the tail that the kernel knows.
func (b *buffers) put(n uint16) {
	e := b.ring[int(b.tail&b.mask)*bufferEntry:][:bufferEntry]
	*(*uint64)(unsafe.Pointer(&e[0])) = uint64(uintptr(unsafe.Pointer(&b.at(n)[0])))
	*(*uint32)(unsafe.Pointer(&e[8])) = uint32(b.size)
	*(*uint16)(unsafe.Pointer(&e[12])) = n
	b.tail++
}

// publish makes the tail visible to the kernel. It writes the complete word, which
// contains the number of the first buffer, too, because half a word cannot be stored
// atomically. The kernel only reads them.
func (b *buffers) publish() {
	word := (*uint32)(unsafe.Pointer(&b.ring[12]))
	n := *(*uint16)(unsafe.Pointer(&b.ring[12]))
	half := [2]uint16{n, b.tail}
	atomic.StoreUint32(word, *(*uint32)(unsafe.Pointer(&half)))
}
