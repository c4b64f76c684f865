package riemann

import (
	"net"
	"os"
	"testing"

	"carronade/internal/conn/socket"
	embedded "carronade/internal/riemann/standin"
	"carronade/internal/riemann/wire"
	"carronade/internal/standin"
	"carronade/load"
	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func TestMain(m *testing.M) {
	standin.Hook(embedded.Kind) // a benchmark's sink is this program
	testkit.MostlyWaiting()
	os.Exit(m.Run())
}

// Sending and completing a batch group allocates nothing once the buffers have grown.
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

// TestThreads: with a schedule and many clients, half of the processors are left to the server.
func TestThreads(t *testing.T) {
	for _, tt := range []struct {
		name      string
		scheduled bool
		clients   int
		want      int
	}{
		{"many clients", true, manyClients, 2},
		{"fewer", true, manyClients - 1, 3},
		{"without a schedule", false, manyClients, 3},
	} {
		s := &session{cfg: &config{scheduled: tt.scheduled, clients: tt.clients}}
		assert.Equal(t, s.Threads(3), tt.want, "%s threads on 3 processors", tt.name)
	}
}
