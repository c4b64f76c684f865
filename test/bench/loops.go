package bench

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// loopWord is the first argument of a process that runs one of the bare loops below.
// Each is a process, so that its CPU time can be measured.
const loopWord = "bare-loop"

// Hook runs the bare loop and exits, in a process that was started for one; in any
// other process it returns at once. A TestMain calls it first.
func Hook() {
	if len(os.Args) < 3 || os.Args[1] != loopWord {
		return
	}
	loop, ok := loops[os.Args[2]]
	if !ok {
		fmt.Fprintf(os.Stderr, "error: no loop %q\n", os.Args[2])
		os.Exit(2)
	}
	if err := loop(os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

var loops = map[string]func([]string) error{
	"apm-agents": agentsLoop,
	"kgo":        kgoLoop,
	"pacer":      pacerLoop,
	"tcp-writer": tcpWriter,
	"tcp-sink":   tcpSink,
}

// A loopResult is what a loop prints.
type loopResult struct {
	Events uint64
	Bytes  uint64
	Nanos  int64
}

// kgoLoop calls kgo.Produce as fast as it returns, as a simple benchmark of franz-go
// would. Batch size, linger, acks and in-flight requests are our client engine's
// defaults; everything else is franz-go's default.
func kgoLoop(args []string) error {
	fs := flag.NewFlagSet("kgo", flag.ContinueOnError)
	brokers := fs.String("brokers", "", "")
	topic := fs.String("topic", "", "")
	size := fs.Int("size", 100, "")
	lasts := fs.Duration("for", 5*time.Second, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	cl, err := kgo.NewClient(
		kgo.SeedBrokers(strings.Split(*brokers, ",")...),
		kgo.DefaultProduceTopic(*topic),
		kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),
		kgo.MaxProduceRequestsInflightPerBroker(5),
		kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.ProducerBatchMaxBytes(256<<10), kgo.ProducerLinger(5*time.Millisecond),
		kgo.MaxBufferedRecords(1<<16), kgo.DisableClientMetrics(),
	)
	if err != nil {
		return fmt.Errorf("make a client: %w", err)
	}
	defer cl.Close()
	ctx := context.Background()
	if err := cl.Ping(ctx); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	values := make([][]byte, 1024)
	random := rand.NewChaCha8([32]byte{1})
	for i := range values {
		values[i] = make([]byte, *size)
		_, _ = random.Read(values[i])
	}
	var acked, failed atomic.Uint64
	var first atomic.Pointer[error]
	promise := func(_ *kgo.Record, err error) {
		if err != nil {
			failed.Add(1)
			first.CompareAndSwap(nil, &err)
			return
		}
		acked.Add(1)
	}
	began := time.Now()
	for i := 0; ; i++ {
		if i&1023 == 0 && time.Since(began) >= *lasts {
			break
		}
		cl.Produce(ctx, &kgo.Record{Value: values[i&1023]}, promise)
	}
	if err := cl.Flush(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	took := time.Since(began)
	if n := failed.Load(); n > 0 {
		return fmt.Errorf("%d records failed, the first: %w", n, *first.Load())
	}
	return json.NewEncoder(os.Stdout).Encode(loopResult{acked.Load(), acked.Load() * uint64(*size), int64(took)})
}

// tcpWriter writes one megabyte of memory to a loopback connection again and again,
// 256 KiB at a time. It computes the CRC32-C of each piece before, which is the
// minimum for a producer of batches with checksums; -sum=false is for protocols
// without checksums. The time ends when the sink has read everything.
func tcpWriter(args []string) error {
	fs := flag.NewFlagSet("tcp-writer", flag.ContinueOnError)
	addr := fs.String("to", "", "")
	lasts := fs.Duration("for", 5*time.Second, "")
	summed := fs.Bool("sum", true, "")
	if err := fs.Parse(args); err != nil {
		return err
	}
	c, err := net.Dial("tcp", *addr)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer c.Close()
	const piece = 256 << 10
	pool := make([]byte, 1<<20)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(pool)
	table := crc32.MakeTable(crc32.Castagnoli)
	sum, written := uint32(0), uint64(0)
	began := time.Now()
	for time.Since(began) < *lasts {
		for at := 0; at < len(pool); at += piece {
			p := pool[at : at+piece]
			if *summed {
				sum ^= crc32.Checksum(p, table)
			}
			n, err := c.Write(p)
			written += uint64(n)
			if err != nil {
				return fmt.Errorf("write: %w", err)
			}
		}
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		return fmt.Errorf("end writing: %w", err)
	}
	if _, err := io.Copy(io.Discard, c); err != nil {
		return fmt.Errorf("wait for the sink: %w", err)
	}
	took := time.Since(began)
	fmt.Fprintln(os.Stderr, "sum", sum) // so that it is not optimized away
	return json.NewEncoder(os.Stdout).Encode(loopResult{0, written, int64(took)})
}

// tcpSink reads connections to their ends until it is killed.
func tcpSink([]string) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	fmt.Println("listening on", ln.Addr())
	for {
		c, err := ln.Accept()
		if err != nil {
			return fmt.Errorf("accept: %w", err)
		}
		go func() {
			defer c.Close()
			if err := readToEnd(c.(*net.TCPConn)); err != nil && !errors.Is(err, io.EOF) {
				fmt.Fprintln(os.Stderr, "error:", err)
			}
		}()
	}
}
