package uring

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

// A Ring is one io_uring. It belongs to the thread that made it: the kernel
// takes calls from no other, and in return does its work when that thread asks
// for completions, and not by interrupting it.
type Ring struct {
	fd  int
	mem []byte // the rings' heads and tails, and the completions
	ops []byte // the submissions

	sqHead, sqTail *uint32 // the kernel's, ours
	cqHead, cqTail *uint32 // ours, the kernel's
	subs           []submission
	comps          []completion
	tail           uint32      // of submissions, up to which they are made
	queued         uint32      // of these the kernel has not been told of
	head           uint32      // of completions, up to which they were taken
	kept           [][]byte    // what the queued sends send
	message        unix.Msghdr // of Recv: how much room there is for control messages
	wait           argument
	until          unix.Timespec // of wait

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
	opRecv        = 27

	setupCompSize     = 1 << 3 // our own number of completions
	setupSubmitAll    = 1 << 7 // one that fails does not hold up those behind it
	setupSingleIssuer = 1 << 12
	setupDeferTaskrun = 1 << 13 // the kernel's part is done when we wait

	featSingleMmap = 1 << 0
	featExtArg     = 1 << 8

	enterGetEvents = 1 << 0
	enterExtArg    = 1 << 3

	withBuffer     = 1 << 5 // the kernel chooses one of a group
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
	completions = 4096 // beyond it the kernel keeps a list, at a cost
)

// New makes a ring with so many buffers (a power of two is made of it; 0: none)
// of size bytes for what Recv receives, with room for so many bytes of the control
// messages, such as timestamps, of each piece. The goroutine must be locked to its thread,
// until Close.
func New(buffers, size, control int) (*Ring, error) {
	p := parameters{flags: setupCompSize | setupSubmitAll | setupSingleIssuer | setupDeferTaskrun, comps: completions}
	fd, _, e := syscall.Syscall(unix.SYS_IO_URING_SETUP, submissions, uintptr(unsafe.Pointer(&p)), 0)
	if e != 0 {
		return nil, fmt.Errorf("set up an io_uring: %w", e)
	}
	r := &Ring{fd: int(fd)}
	if err := r.mapIn(&p); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	r.message.SetControllen(control)
	if err := r.bufs.make(r.fd, buffers, messageHead+control+size); err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// mapIn maps what is shared with the kernel.
func (r *Ring) mapIn(p *parameters) (err error) {
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
	for i := range p.subs { // submissions are taken in the order of their places
		*at(p.sub.array + 4*i) = i
	}
	r.subs = unsafe.Slice((*submission)(unsafe.Pointer(&r.ops[0])), p.subs)
	r.comps = unsafe.Slice((*completion)(unsafe.Pointer(&r.mem[p.comp.entry])), p.comps)
	r.kept = make([][]byte, p.subs)
	return nil
}

// Close gives everything back. What is still with the kernel is canceled there,
// and nobody hears of it.
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

// Send queues one send of what the socket takes at once. Its completion is
// there when the next Enter returns: as many bytes as were taken, or
// syscall.EAGAIN. The bytes must stay as they are until then.
func (r *Ring) Send(fd int, p []byte, tag uint64) {
	i, s := r.next()
	s.op, s.fd, s.tag = opSend, int32(fd), tag
	s.addr, s.size = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p))
	s.opFlags = unix.MSG_DONTWAIT | unix.MSG_NOSIGNAL
	r.kept[i] = p
}

// Recv queues receiving, whenever there is something, into the ring's buffers,
// until a completion comes without More. One such with syscall.ENOBUFS means
// that the buffers were all in use: it is to be queued again. One without Err and Data
// says that the other side closed the connection.
func (r *Ring) Recv(fd int, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag = opRecvmsg, int32(fd), tag
	s.flags, s.prio = withBuffer, recvMultishot
	s.addr, s.size = uint64(uintptr(unsafe.Pointer(&r.message))), 1
}

// messageHead is the size of struct io_uring_recvmsg_out, with which what Recv receives
// begins: lengths of the name, of the control message and of the payload, and flags.
const messageHead = 16

// Read queues receiving once into p, which is the kernel's until the completion
// comes, wherever that is.
func (r *Ring) Read(fd int, p []byte, tag uint64) {
	i, s := r.next()
	r.kept[i] = p // on the heap, then, where it does not move
	s.op, s.fd, s.tag = opRecv, int32(fd), tag
	s.addr, s.size = uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p)))), uint32(len(p))
}

// Drop queues that bytes, so many at most, are taken off a TCP connection without
// being copied (MSG_TRUNC, tcp(7)), once: as many as there are by then. (With
// MSG_WAITALL the kernel, as of 6.18, takes too many: each of its attempts is for
// the number that the first was for.)
func (r *Ring) Drop(fd, n int, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag = opRecv, int32(fd), tag
	s.size, s.opFlags = uint32(min(n, 1<<30)), unix.MSG_TRUNC
}

// Watch queues that a descriptor's readiness (unix.POLLIN, unix.POLLOUT) is
// told: once, or whenever it changes.
func (r *Ring) Watch(fd int, events uint32, again bool, tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag, s.opFlags = opPollAdd, int32(fd), tag, events
	if again {
		s.size = pollMultishot
	}
}

// CancelAll queues that everything with the kernel ends.
func (r *Ring) CancelAll(tag uint64) {
	_, s := r.next()
	s.op, s.fd, s.tag, s.opFlags = opAsyncCancel, -1, tag, cancelAll|cancelAny
}

// Full reports that what is queued next first hands over all before it.
func (r *Ring) Full() bool { return r.queued == uint32(len(r.subs)) }

// next is the next place for a submission.
func (r *Ring) next() (i uint32, s *submission) {
	for r.queued == uint32(len(r.subs)) {
		_ = r.Enter(0, 0, true) // full: the kernel takes them, unless it has no memory for the moment
	}
	i = r.tail & uint32(len(r.subs)-1)
	r.tail++
	r.queued++
	s = &r.subs[i]
	*s = submission{}
	return i, s
}

// Enter hands over what is queued and waits until so many completions are
// there, for so long at most (below 0: for ever). Own: the Go scheduler is not told,
// which is right for a thread that has a processor of its own there. What went wrong (0: nothing) is syscall.ETIME, syscall.EINTR, or one after which it may be called
// again: syscall.EBUSY once completions were taken, syscall.EAGAIN a little
// later. It is nothing where anything was handed over, even if the wait ended
// early.
func (r *Ring) Enter(wait int, most time.Duration, own bool) syscall.Errno {
	atomic.StoreUint32(r.sqTail, r.tail)
	call := syscall.Syscall6
	if own {
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

// Queued is how many submissions the kernel has not been told of.
func (r *Ring) Queued() int { return int(r.queued) }

// A Completion is what came of a submission.
type Completion struct {
	Tag  uint64
	N    int           // bytes, or events that are ready
	Err  syscall.Errno // 0: none
	More bool          // there will be others for the same submission

	// Data was received, and the control messages with it. Both are the ring's, and to be
	// given back by Release.
	Data    []byte
	Control []byte
	buffer  uint16
	held    bool // the buffer is to be given back
}

// Ready returns how many completions there are to take.
func (r *Ring) Ready() int { return int(atomic.LoadUint32(r.cqTail) - r.head) }

// Next takes the next completion. False: there is none.
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
		c.buffer, c.held = uint16(e.flags>>16), true
		c.separate(r.bufs.at(c.buffer)[:c.N], int(r.message.Controllen))
	}
	r.head++
	atomic.StoreUint32(r.cqHead, r.head)
	return c, true
}

// separate takes apart what was received, with room for so many bytes of control messages.
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

// Release gives the buffer of a completion back, where it has one.
func (r *Ring) Release(c *Completion) {
	if c.held {
		c.Data, c.Control, c.held = nil, nil, false
		r.bufs.put(c.buffer)
		r.bufs.publish()
	}
}

// buffers is a ring of buffers from which the kernel takes one for each piece
// that it receives, so that connections that have nothing to say need none.
type buffers struct {
	ring []byte // of struct io_uring_buf; the tail lies in the first one
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

// put adds a buffer behind the tail that the kernel knows.
func (b *buffers) put(n uint16) {
	e := b.ring[int(b.tail&b.mask)*bufferEntry:][:bufferEntry]
	*(*uint64)(unsafe.Pointer(&e[0])) = uint64(uintptr(unsafe.Pointer(&b.at(n)[0])))
	*(*uint32)(unsafe.Pointer(&e[8])) = uint32(b.size)
	*(*uint16)(unsafe.Pointer(&e[12])) = n
	b.tail++
}

// publish shows the kernel the tail. Of the word that holds it and the number
// of the first buffer, both are written: there is no atomic store of half a
// word. The kernel only reads them.
func (b *buffers) publish() {
	word := (*uint32)(unsafe.Pointer(&b.ring[12]))
	n := *(*uint16)(unsafe.Pointer(&b.ring[12]))
	half := [2]uint16{n, b.tail}
	atomic.StoreUint32(word, *(*uint32)(unsafe.Pointer(&half)))
}
