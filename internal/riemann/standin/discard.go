package standin

import (
	"io"
	"net"
	"sync"
	"time"

	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
)

// sinkWindowSize is how many bytes the discarding server reads at once. It spends
// its time on reads and writes, so they are large.
const sinkWindowSize = 512 << 10

// queryTag is the first byte of a message that contains only a query: field 5, of
// bytes.
const queryTag = 5<<3 | 2

// makeThreads makes the threads; some tests run without any.
var makeThreads = standin.NewThreads

// fewConns is how many connections have a goroutine each although there are threads that serve many: a
// goroutine that has just answered looks for the next messages for a moment before it
// sleeps, so one connection at full speed is faster with it. Tests set it to 0.
var fewConns int64 = 16

// ackRun contains the acks for as many messages as fit into a window: as only this server
// needs them, no other process makes them.
var ackRun = sync.OnceValue(func() []byte { return wire.AppendAcks(nil, sinkWindowSize/wire.FrameHead) })

// A skimmer is the standin.Skimmer of the discarding server: it counts frames by their
// lengths and answers with the same number of acks. It recognizes a query by its
// first byte and answers it, so that a client can ask which server this is. It keeps only
// the beginning of a frame that is not complete, and a query.
type skimmer struct {
	*core
	meter *meter
	rec   *standin.RecordedConn // nil: nothing is recorded

	part []byte // of a query, or of a frame whose first byte after the head is not here yet
	left int64  // bytes until the end of a message that is not a query
	size int    // of its frame
	out  []byte // answers to write
	acks int    // acks to write after out
}

func newSkimmer(c *core, nc net.Conn, m *meter) *skimmer {
	return &skimmer{core: c, meter: m, rec: standin.RecordedConnOf(nc)}
}

// Take counts and answers messages. It leaves bytes if the answers to queries are large.
func (k *skimmer) Take(p []byte) (int, error) {
	now := time.Now()
	had, messages := len(p), 0
	var err error
	for len(p) > 0 && len(k.out) < flushAt && err == nil {
		var n, whole int
		switch {
		case k.left > 0:
			n = int(min(k.left, int64(len(p))))
			whole = k.skip(int64(n))
		case len(k.part) > 0:
			n, whole, err = k.complete(p, now)
		default:
			n, whole, err = k.frames(p, now)
		}
		p = p[n:]
		messages += whole
	}
	if messages > 0 {
		k.meter.record(messages, time.Since(now))
	}
	return had - len(p), err
}

// Skippable is what is left of a message that is not a query.
func (k *skimmer) Skippable() int64 { return k.left }

// Skip notes that n of its bytes were skipped.
func (k *skimmer) Skip(n int64) error {
	k.meter.record(k.skip(n), 0)
	return nil
}

func (k *skimmer) skip(n int64) (messages int) {
	if k.left -= n; k.left > 0 {
		return 0
	}
	k.answer(k.size)
	return 1
}

// End is the error of a connection that ends here.
func (k *skimmer) End() error {
	if len(k.part) > 0 || k.left > 0 {
		return io.ErrUnexpectedEOF
	}
	return io.EOF
}

// Answers returns the answers to what was taken.
func (k *skimmer) Answers() []byte {
	if len(k.out) > 0 {
		k.addAcks()
		p := k.out
		k.out = emptied(p)
		return p
	}
	run := ackRun()
	p := run[:min(k.acks*wire.AckSize, len(run))]
	k.acks -= len(p) / wire.AckSize
	return p
}

// addAcks puts the acks into out, so that another answer can come after them.
func (k *skimmer) addAcks() {
	k.out = wire.AppendAcks(k.out, k.acks)
	k.acks = 0
}

// frames processes the frames that p begins with, and returns their bytes: a run of messages,
// one query, or the beginning of a frame.
func (k *skimmer) frames(p []byte, now time.Time) (n, messages int, err error) {
	limit := int(k.opts.MaxMessage)
	if len(k.opts.Errors) == 0 {
		if messages, n = wire.CountFrames(p, limit); messages > 0 {
			k.tally.messages.Add(uint64(messages))
			k.tally.bytes.Add(uint64(n))
			if k.rec != nil {
				for range messages {
					recordMessage(k.rec, standin.NoRecord)
				}
			}
			k.acks += messages
			return n, messages, nil
		}
	}
	msg, rest, err := wire.NextFrame(p, limit)
	switch {
	case err != nil:
		return 0, 0, badFrame(err)
	case rest != nil:
		return len(p) - len(rest), 1, k.message(msg, now)
	case len(p) <= wire.FrameHead || p[wire.FrameHead] == queryTag:
		k.part = append(k.part, p...)
	default:
		k.size = wire.FrameSize(p)
		k.left = int64(k.size - len(p))
	}
	return len(p), 0, nil
}

// complete adds to the part of a frame, and processes it if that is enough: the head, the
// first byte of the message, and all of a query.
func (k *skimmer) complete(p []byte, now time.Time) (n, messages int, err error) {
	want := wire.FrameHead
	if len(k.part) >= wire.FrameHead {
		if want++; len(k.part) >= want {
			want = wire.FrameSize(k.part) // a query
		}
	}
	n = min(want-len(k.part), len(p))
	k.part = append(k.part, p[:n]...)
	msg, rest, err := wire.NextFrame(k.part, int(k.opts.MaxMessage))
	switch {
	case err != nil:
		return n, 0, badFrame(err)
	case rest != nil:
		messages, err = 1, k.message(msg, now)
	case len(k.part) <= wire.FrameHead || k.part[wire.FrameHead] == queryTag:
		return n, 0, nil
	default:
		k.size = wire.FrameSize(k.part)
		k.left = int64(k.size - len(k.part))
	}
	k.part = emptied(k.part)
	return n, messages, err
}

// message answers a complete message.
func (k *skimmer) message(msg []byte, now time.Time) error {
	size := wire.FrameHead + len(msg)
	if len(msg) == 0 || msg[0] != queryTag {
		k.answer(size)
		return nil
	}
	m, err := wire.DecodeMsg(msg)
	if err != nil {
		return err
	}
	k.addAcks()
	k.out = k.find(k.out, m.Query, now)
	k.count(size, 0)
	return nil
}

// answer answers a message that is not a query, and may get an error. size is that of its
// frame.
func (k *skimmer) answer(size int) {
	if i := k.dice.Draw(); i >= 0 {
		k.tally.refused.Add(1)
		k.addAcks()
		k.out = appendError(k.out, k.opts.Errors[i].Name)
	} else {
		k.acks++
	}
	k.count(size, standin.NoRecord)
}

// count counts and records a message.
func (k *skimmer) count(size, events int) {
	k.tally.messages.Add(1)
	k.tally.bytes.Add(uint64(size))
	recordMessage(k.rec, events)
}
