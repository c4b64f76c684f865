// Package uring provides the parts of Linux's io_uring that a generator needs: sends,
// receives and readiness of many sockets by one system call a round, on one thread. It
// contains the two queues that are shared with the kernel and the buffers that answers
// come in; it does not depend on what the bytes mean, and starts no goroutine.
//
// Its invariant: every submission is either still queued or with the kernel, and each
// one with the kernel ends with a completion without More.
//
// The interface is that of io_uring_setup(2), io_uring_enter(2), io_uring_register(2)
// and linux/io_uring.h; Linux 6.1 supports all of it. On a system that does not support
// or allow it, New fails, and the caller must use another method.
package uring
