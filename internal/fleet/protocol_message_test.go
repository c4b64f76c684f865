package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"carronade/test/testkit"
	"carronade/test/testkit/assert"
)

func messages() []*message {
	hash := make([]byte, hashSize)
	base := func(k messageKind) *message {
		return &message{Protocol: protocolVersion, Kind: k, Run: "r-1", Session: "s", Incarnation: "i"}
	}
	ping, pong, plan, again, beat, status, refuse, frame, part := base(kindPing), base(kindPong), base(kindLoad), base(kindRecover), base(kindBeat), base(kindStatus), base(kindRefuse), base(kindFrame), base(kindPart)
	ping.Number, ping.Sent, ping.Incarnation = 1, 5, ""
	pong.Number, pong.Info = 1, &Info{Name: "a", Incarnation: "i", Version: "1", AllowTargets: []string{"host:*"}}
	plan.Plan, plan.Share, plan.Hash = []byte("plan"), []byte("share"), hash
	beat.Number, beat.Want, beat.Acked, beat.Beyond = 7, wantStop, 3, 1<<31
	status.Phase, status.Now, status.Err = phaseRunning, 12345, "it is üble"
	status.Disturbed = "other programs use 97% of the processors"
	frame.Number, frame.Origin, frame.Data = 1, "i", bytes.Repeat([]byte{0xff}, maxFrame)
	part.Number, part.Origin = 1<<60, "j"
	return []*message{ping, pong, plan, again, beat, status, refuse, frame, part}
}

func TestMessage(t *testing.T) {
	for _, m := range messages() {
		data := m.Encode()
		assert.True(t, len(data) <= maxMessage, "a %s of %d bytes", m.Kind, len(data))
		got, err := decodeMessage(data)
		assert.True(t, err == nil && reflect.DeepEqual(got, m), "%s: %.200s came back as %.200v, %v", m.Kind, data, got, err)
	}
	// The largest plan fits into a message.
	big := messages()[2]
	big.Plan, big.Share = make([]byte, maxPlan-100), make([]byte, 100)
	n := len(big.Encode())
	assert.True(t, n <= maxMessage, "the largest plan makes a message of %d bytes", n)
}

// TestMessageRefused changes valid messages so that they must be refused.
func TestMessageRefused(t *testing.T) {
	for _, m := range messages() {
		for name, change := range map[string]func(map[string]any){
			"an unknown kind":    func(o map[string]any) { o["kind"] = "other" },
			"no kind":            func(o map[string]any) { delete(o, "kind") },
			"no run":             func(o map[string]any) { delete(o, "run") },
			"a path as run":      func(o map[string]any) { o["run"] = "../etc" },
			"a hidden run":       func(o map[string]any) { o["run"] = ".lock" },
			"no session":         func(o map[string]any) { delete(o, "session") },
			"a long incarnation": func(o map[string]any) { o["incarnation"] = strings.Repeat("x", maxName+1) },
			"an unknown field":   func(o map[string]any) { o["extra"] = 1 },
			"another type":       func(o map[string]any) { o["number"] = "one" },
		} {
			var o map[string]any
			text, data, _ := bytes.Cut(m.Encode(), []byte{dataFollows})
			fromJSON(text, &o)
			change(o)
			text = mustJSON(o)
			if len(data) > 0 {
				text = append(append(text, dataFollows), data...)
			}
			got, err := decodeMessage(text)
			assert.True(t, err != nil, "a %s with %s was taken: %v", m.Kind, name, got)
		}
		var other *protocolError
		data := bytes.Replace(m.Encode(), []byte(`"protocol":2`), []byte(`"protocol":3`), 1)
		_, err := decodeMessage(data)
		assert.True(t, errors.As(err, &other) && other.Got == 3, "a %s of protocol 3: %v", m.Kind, err)
		_, err = decodeMessage(append(m.Encode(), '{'))
		assert.True(t, err != nil, "a %s with something behind it was taken", m.Kind)
	}
	const head = `{"protocol":2,"kind":"frame","run":"r","session":"s","incarnation":"i","origin":"i","number":1}`
	assert.Value(decodeMessage([]byte(head + "\nA")))(t)
	for _, text := range []string{
		"", "null", "[]", "1", strings.Repeat("[", 1000), head + "\n", head + "\n" + strings.Repeat("A", maxFrame+1), "\n" + head,
		`{"protocol":2,"kind":"halt","run":"r","session":"s","incarnation":"i"}` + "\nA",
	} {
		_, err := decodeMessage([]byte(text))
		assert.True(t, err != nil, "%.40s was taken", text)
	}
}

// TestMessageText: what an agent says cannot control a terminal, and is short.
func TestMessageText(t *testing.T) {
	m := messages()[5]
	m.Err = "a\x1b[31mb\n" + strings.Repeat("\x00", 1<<20)
	data := m.Encode()
	assert.Must(t, len(data) <= maxMessage, "a status of %d bytes", len(data))
	got, err := decodeMessage(data)
	assert.True(t, err == nil && strings.HasPrefix(got.Err, `a\u001b[31mb\u000a\u0000`), "the text came back as %.60q, %v", got.Err, err)
	raw := bytes.Replace(messages()[5].Encode(), []byte("it is"), []byte(`x\u001b\u009b`), 1)
	got, err = decodeMessage(raw)
	assert.True(t, err == nil && strings.HasPrefix(got.Err, `x\u001b\u009b `), "the text came back as %q, %v", got.Err, err)
}

func FuzzDecodeMessage(f *testing.F) {
	for _, m := range messages() {
		if len(m.Data) > 100 {
			m.Data = m.Data[:100]
		}
		f.Add(m.Encode())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := decodeMessage(data)
		if err != nil {
			return
		}
		again := assert.Value(decodeMessage(m.Encode()))(t, "%s is refused when it is sent on", data)
		a, _ := json.Marshal(m)
		b, _ := json.Marshal(again)
		assert.True(t, bytes.Equal(a, b) && bytes.Equal(m.Data, again.Data), "%s %q became %s %q", a, m.Data, b, again.Data)
		// Neither side fails, whatever it gets.
		agent := newAgentProtocol(Info{Name: "a", Incarnation: "i", Version: "1"}, NewMemorySpool())
		c := assert.Value(newCoordinator(runConfig{Run: "r-1", Session: "s", Version: "1", Agents: []string{"a"}}))(t)
		c.Tick(1)
		pong := messages()[1]
		pong.Sent = 1
		c.Receive(2, "a", pong)
		for _, known := range messages() {
			agent.Receive(10, known)
			agent.Receive(20, m)
			c.Receive(30, "a", known)
			c.Receive(40, "a", m)
		}
		agent.Next()
		c.Next()
	})
}

// TestProtocolIsPure: the state machines know neither the engine nor time nor connections. They get
// all that as arguments, so a simulation decides it.
func TestProtocolIsPure(t *testing.T) {
	files := assert.Value(filepath.Glob("protocol*.go"))(t)
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	assert.Must(t, len(files) >= 5, "got the files %q, want those of the protocol", files)
	set := token.NewFileSet()
	for _, name := range files {
		file := assert.Value(parser.ParseFile(set, name, nil, 0))(t)
		for _, problem := range impure(file) {
			t.Errorf("%s: %s", set.Position(problem.at), problem.what)
		}
	}
}

// TestImpure: each rule can fail.
func TestImpure(t *testing.T) {
	const source = `package fleet
import (
	"net/http"
	"time"
	"carronade/load"
)
func f(c chan int, d time.Duration) {
	go f(c, 0)
	c <- 1
	select {}
	<-time.After(d)
	_ = time.Now()
	_ = http.ErrServerClosed
	_ = load.Never
}`
	file := assert.Value(parser.ParseFile(token.NewFileSet(), "protocol.go", source, 0))(t)
	var got []string
	for _, problem := range impure(file) {
		got = append(got, problem.what)
	}
	want := []string{
		"imports net/http", "imports carronade/load", "uses a channel", "starts a goroutine", "uses a channel", "uses a channel", "uses a channel",
		"calls time.After", "calls time.Now",
	}
	assert.True(t, slices.Equal(got, want), "got %q, want %q", got, want)
}

// An impurity is what a state machine must not do.
type impurity struct {
	at   token.Pos
	what string
}

// pure are the packages that a state machine may import: they compute and do nothing else.
var pure = []string{
	"bytes", "cmp", "crypto/sha256", "encoding/json", "errors", "fmt", "io", "maps", "math", "slices", "strconv", "strings",
	"sync/atomic", "time", "unicode",
}

// impure returns what a file does that a state machine must not do.
func impure(file *ast.File) (all []impurity) {
	for _, i := range file.Imports {
		path, _ := strconv.Unquote(i.Path.Value) // the parser checked it
		if !slices.Contains(pure, path) {
			all = append(all, impurity{i.Pos(), "imports " + path})
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			all = append(all, impurity{n.Pos(), "starts a goroutine"})
		case *ast.ChanType, *ast.SelectStmt, *ast.SendStmt:
			all = append(all, impurity{n.Pos(), "uses a channel"})
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				all = append(all, impurity{n.Pos(), "uses a channel"})
			}
		case *ast.SelectorExpr:
			of, ok := n.X.(*ast.Ident)
			if ok && of.Name == "time" && slices.Contains([]string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"}, n.Sel.Name) {
				all = append(all, impurity{n.Pos(), "calls time." + n.Sel.Name})
			}
		}
		return true
	})
	return all
}

// TestClock: whatever the delays of the two ways, and with clocks that are an hour
// apart and too fast or too slow, the true offset is within the bound.
func TestClock(t *testing.T) {
	for seed := range uint64(testkit.Cases(400, 60)) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		up, down := time.Duration(rnd.Int64N(int64(30*time.Millisecond))), time.Duration(rnd.Int64N(int64(30*time.Millisecond)))
		if seed%3 == 0 {
			up = 0 // as asymmetric as can be
		}
		jitter := time.Duration(rnd.Int64N(int64(50*time.Millisecond))) + 1
		offset := time.Duration(rnd.Int64N(int64(2*time.Hour))) - time.Hour
		drift, waves := (rnd.Float64()*2-1)*100e-6, 0.0
		if seed%2 == 0 {
			waves = 10e-6 // the temperature changes
		}
		other := func(at time.Duration) time.Duration {
			x := float64(at)
			const period = 300e9 / (2 * math.Pi)
			return at + offset + time.Duration(drift*x+waves*period*math.Sin(x/period))
		}
		var c remoteClock
		now := 5 * time.Second
		exchange := func() {
			sent := now
			received := sent + up + time.Duration(rnd.Int64N(int64(jitter)))
			answered := received + time.Duration(rnd.Int64N(int64(time.Millisecond)))
			now = answered + down + time.Duration(rnd.Int64N(int64(jitter)))
			assert.Must(t, c.Add(sent, other(received), other(answered), now), "seed %d: an exchange was refused", seed)
		}
		check := func(at time.Duration) {
			got, bound := c.At(at)
			truth := other(at) - at
			assert.Must(t, (truth-got).Abs() <= bound, "seed %d: at %v the offset is %v, estimated %v, at most %v wrong", seed, at, truth, got, bound)
			shortest, _ := c.RTT()
			most := shortest/2 + 20*time.Millisecond + time.Duration(maxSlope*2*math.Abs(float64(now-at)))
			assert.Must(t, bound <= most, "seed %d: the bound at %v is %v, with a round trip of %v: more than %v", seed, at-now, bound, shortest, most)
		}
		for range firstExchanges {
			exchange()
		}
		for range 60 {
			for _, ahead := range []time.Duration{-3 * time.Second, 0, time.Second, 4 * time.Second, 10 * time.Second} {
				check(now + ahead)
			}
			now += exchangesEvery
			for range laterExchanges {
				exchange()
			}
		}
		assert.Equal(t, c.steps, 0, "seed %d: steps of clocks that were not set", seed)
	}
}

// TestClockDrift: after a minute of exchanges the drift is known, and the bound grows by the time as it should.
func TestClockDrift(t *testing.T) {
	var c remoteClock
	for at := time.Duration(0); at < time.Minute; at += time.Second {
		theirs := at + 250*time.Microsecond + time.Duration(80e-6*float64(at))
		c.Add(at, theirs, theirs, at+500*time.Microsecond)
	}
	c.fit()
	assert.True(t, math.Abs(c.slope-80e-6) <= 2e-6 && c.rate <= 70e-6, "the slope is %v ± %v, want 80e-6", c.slope, c.rate)
	_, near := c.At(time.Minute)
	_, far := c.At(2 * time.Minute)
	assert.True(t, near <= 400*time.Microsecond && far-near >= 3*time.Millisecond && far-near <= 5*time.Millisecond,
		"the bound is %v, a minute later %v", near, far)
}

// TestClockStep: a virtual machine was suspended. The older exchanges are worth nothing.
func TestClockStep(t *testing.T) {
	var c remoteClock
	_, bound := c.At(0)
	assert.Equal(t, bound, unknownBound, "the bound without exchanges")
	for i := range 20 {
		at := time.Duration(i) * time.Second
		theirs := at + time.Millisecond/2
		if i >= 10 {
			theirs -= time.Minute
		}
		c.Add(at, theirs, theirs, at+time.Millisecond)
	}
	if offset, bound := c.At(20 * time.Second); (offset+time.Minute).Abs() > bound || bound > 2*time.Millisecond || c.steps != 1 {
		t.Errorf("offset %v ± %v after %d steps; want a minute, once", offset, bound, c.steps)
	}
	for _, bad := range [][4]time.Duration{{5, 0, 0, 4}, {0, 5, 4, 10}, {0, 0, 20, 10}, {0, 0, 0, 2 * time.Hour}, {math.MinInt64, 0, 0, math.MaxInt64}} {
		n := c.Len()
		assert.True(t, !c.Add(bad[0], bad[1], bad[2], bad[3]) && c.Len() == n, "the exchange %v was taken", bad)
	}
}

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

// TestReader: an agent that reads ends after the others; if it gets the order to end before them, it is not complete.
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
