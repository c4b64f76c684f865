package riemann

import (
	"net"
	"testing"

	"carronade/internal/conn/socket"
	"carronade/internal/riemann/wire"
	"carronade/load"
	"carronade/test/testkit/assert"
)

// Sending and completing a batch group allocates nothing once the buffers have
// grown.
func TestLaneAllocatesNothing(t *testing.T) {
	if raced {
		t.Skip("pools drop what they keep")
	}
	here, there := net.Pipe()
	defer there.Close()
	l, sink := newTestLane(t, 1, true)
	l.link.Conn.Close()
	l.link.Conn = here
	answers := wire.AppendAcks(nil, 100)
	assert.Value(l.link.processAnswers(answers[:wire.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	seq := uint64(1)
	batches := make([]load.Batch, 1)
	complete := func(n int32) {
		batches[0] = load.Batch{Seq: seq, First: seq, Events: n, Batches: n, DueFirst: -1, DueLast: -1}
		seq += uint64(n)
		assert.Must(t, l.Fire(batches) == 1, "not taken")
		l.flushUnwritten()
		l.out, l.waiting = l.waiting, l.out[:0]
		l.off, l.edge, l.outLast = 0, 0, l.queued
		l.wrote(len(l.out))
		assert.Value(l.link.processAnswers(answers[:int(n)*wire.AckSize], socket.Arrival{Last: sink.Now()}))(t)
	}
	complete(100)
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(100) }), 0, "allocations for a batch group of 100 messages")
	assert.Equal(t, testing.AllocsPerRun(1000, func() { complete(1) }), 0, "allocations for a message")
}
