package bus

import (
	"fmt"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

// TestDayOfAFleet: a day of a fleet in fast time leaves the server, an agent and the operator with the memory that they
// had after its first hour: in each hour agents and operators connect and leave, strangers fail, tokens are made and
// expire unused, and messages go both ways.
func TestDayOfAFleet(t *testing.T) {
	testkit.OnlyConformance(t, "minutes: 2,400 connections with TLS")
	b := start(t)
	o := b.operatorMail()
	stays := b.agent("stays")
	received := agentMail(t, stays)
	join, dir := b.join("comes"), t.TempDir()
	var before int64
	for hour := range 24 {
		for i := range 50 {
			a, err := ConnectAgent(t.Context(), AgentConfig{Join: join, Dir: dir, Logf: b.log.logf})
			assert.OK(t, err)
			assert.OK(t, a.Send([]byte("hello")))
			o.want("comes", "hello")
			assert.OK(t, a.Close())
			other, err := ConnectOperator(t.Context(), b.cfg.Dir+"/"+OperatorFile)
			assert.OK(t, err)
			_, err = other.Token(t.Context(), fmt.Sprintf("unused-%d-%d", hour, i), time.Minute)
			assert.OK(t, err)
			assert.OK(t, other.Close())
		}
		for i := range 2000 {
			text := fmt.Sprint("message ", i)
			assert.OK(t, stays.Send([]byte(text)))
			o.want("stays", text)
			assert.OK(t, b.operator.Send("stays", []byte(text)))
			received.want("", text)
		}
		b.clock.advance(time.Hour)
		b.log.mu.Lock()
		b.log.lines = nil // the test's
		b.log.mu.Unlock()
		if hour == 0 {
			before = testkit.Heap()
		}
	}
	grown := testkit.Heap() - before
	assert.True(t, grown < 2<<20, "the fleet has grown by %d KiB in 23 hours", grown>>10)
}
