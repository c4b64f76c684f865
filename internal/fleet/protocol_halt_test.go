package fleet

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestHalt: an operator that does not command the run ends it on all agents.
func TestHalt(t *testing.T) {
	g := newGoodWorld(t, 3, nil)
	g.at(6*time.Second, func() {
		for _, a := range g.agents {
			a.step(func(now time.Duration) {
				a.agent.Receive(now, &message{Kind: kindHalt, Run: "other", Session: "stop", Incarnation: a.incarnation()})
				a.agent.Receive(now, &message{Kind: kindHalt, Run: "run", Session: "stop", Incarnation: a.incarnation(), Reason: "enough"})
			})
		}
	})
	o := g.mustPlay(t)
	g.want(t, o, stateMarked, "not every agent fired all of its share: a0, a1, a2")
	for i, a := range o.Agents {
		if a.State != stateMarked || !a.Result || g.agents[i].engines[0].lastFired > 6*time.Second {
			t.Errorf("%+v, fired until %v", a, g.agents[i].engines[0].lastFired)
		}
	}
}

// TestReader: an agent that reads ends after the others; if it gets the order to end
// before them, it is not complete.
func TestReader(t *testing.T) {
	for _, halted := range []bool{false, true} {
		g := newGoodWorld(t, 3, func(c *runConfig) {
			c.Readers = []string{"a2"}
			c.Shares["a0"], c.Shares["a1"], c.Shares["a2"] = mustJSON(simShare{0, 4}), mustJSON(simShare{4, 8}), mustJSON(simShare{})
		})
		reader := g.agents[2]
		if halted {
			g.at(6*time.Second, func() {
				reader.step(func(now time.Duration) {
					reader.agent.Receive(now, &message{Kind: kindHalt, Run: "run", Session: "stop", Incarnation: reader.incarnation()})
				})
			})
		}
		o := g.mustPlay(t)
		want := map[bool]runState{false: stateComplete, true: stateMarked}[halted]
		if o.State != want || o.Agents[2].State != want || o.Agents[0].State != stateComplete || !o.Agents[2].Result {
			t.Errorf("halted %v: the run is %s, the reader %+v, a sender %+v", halted, o.State, o.Agents[2], o.Agents[0])
		}
	}
	_, err := newCoordinator(runConfig{Run: "r", Session: "s", Agents: []string{"a"}, Readers: []string{"a"}})
	assert.True(t, err != nil, "a run in which all agents read")
}
