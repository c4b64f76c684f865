package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

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
	assert.True(t, err == nil && strings.HasPrefix(got.Err, `a\u001b[31mb\u000a\u0000`),
		"the text came back as %.60q, %v", got.Err, err)
	raw := bytes.Replace(messages()[5].Encode(), []byte("it is"), []byte(`x\u001b\u009b`), 1)
	if got, err := decodeMessage(raw); err != nil || !strings.HasPrefix(got.Err, `x\u001b\u009b `) {
		t.Errorf("the text came back as %q, %v", got.Err, err)
	}
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
