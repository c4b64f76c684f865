// Package uring is Linux's io_uring as far as a generator needs it: sends,
// receives and readiness of many sockets by one system call a round, on one
// thread. It answers for the two queues that are shared with the kernel and for
// the buffers that answers come in; it refuses to know what the bytes mean, and
// it has no goroutine.
//
// Its invariant: whatever was queued is either still queued or with the kernel,
// and everything with the kernel ends with a completion without More.
//
// The protocol is that of io_uring_setup(2), io_uring_enter(2),
// io_uring_register(2) and linux/io_uring.h; a kernel of 6.1 has all of it. A
// system that has it not, or forbids it, makes New fail, and whoever asked takes
// another path.
package uring
