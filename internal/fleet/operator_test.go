package fleet

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"carronade/internal/report"
	"carronade/internal/run"
	"carronade/load"
	"carronade/measure"
	"carronade/test/testkit/assert"
)

// TestUnreadableInterval: an interval that cannot be decoded marks the run, also if all else of the
// agent is there.
func TestUnreadableInterval(t *testing.T) {
	var said []string
	r := &firing{
		order:        &run.Order{Logf: func(format string, _ ...any) { said = append(said, format) }, Watch: func(load.Snapshot) {}},
		frames:       map[uint64][]*load.Snapshot{},
		infos:        map[string]Info{},
		participants: []*participant{{row: report.Agent{Name: "a", To: 1}}},
	}
	good := assert.Value(packSnapshot(&load.Snapshot{At: time.Second, Phase: measure.Measurement}, nil))(t)
	result := assert.Value(pack(&run.Measured{Result: &load.Result{}}))(t)
	for i, data := range [][]byte{good, good[:len(good)-3], []byte("x")} {
		r.take(frameOf{Agent: "a", Number: uint64(i + 1), Data: data})
		r.take(intervalClosed{Number: uint64(i + 1)})
	}
	r.take(resultOf{Agent: "a", Data: result})
	r.take(runFinished{Outcome: runOutcome{State: stateComplete, Agents: []agentOutcome{{Name: "a", Result: true}}}})
	g := assert.Value(r.combine())(t)
	if len(g.Faults) != 1 || !strings.Contains(g.Faults[0], "agent a: 2 of its intervals cannot be read; the first of them is number 2: not compressed as expected") {
		t.Errorf("faults %q", g.Faults)
	}
	assert.Equal(t, len(said), 2, "said %q", said)
}

// TestOtherProtocol: an agent that speaks another version of the protocol is refused with that
// reason.
func TestOtherProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		through, own := Within("a")
		own.Receive(func([]byte, time.Time) {
			_ = own.Send([]byte(`{"protocol":1,"kind":"pong","run":"look","session":"s","incarnation":"i","number":1,"info":{"incarnation":"i"}}`))
		})
		silent, _ := Within("b")
		f := &Fleet{Bus: Routes{"a": {Through: through, Agent: "a"}, "b": {Through: silent, Agent: "b"}}, Agents: []string{"a", "b"}, Config: Config{Logf: t.Logf}}
		infos := f.Look(context.Background(), f.Agents)
		err := f.Silent(f.Agents, infos)
		assert.ErrorHas(t, err, "agent a: it speaks version 1 of the fleet's protocol, this program version 2")
		err = f.Silent([]string{"b"}, infos)
		assert.True(t, err != nil && err.Error() == "b did not answer", "got %v", err)
		assert.True(t, f.Bus.Send("c", nil) != nil, "a message went to an agent that is not there")
	})
}
