package fleet

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"carronade/internal/null"
	"carronade/internal/workload"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestParse: a plan cannot have an agent run a command or stop a process, even if it allows
// everything, and its clients have to be possible.
func TestParse(t *testing.T) {
	a := &agent{AgentConfig: AgentConfig{Kinds: []protocol.Kind{null.Kind{}}, Allow: func(settings []workload.Entry) error {
		if slices.ContainsFunc(settings, func(e workload.Entry) bool { return e.Name == "payload" }) {
			return errors.New("this agent allows no files")
		}
		return nil
	}}}
	for _, c := range []struct{ name, plan, share, want string }{
		{"good", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 0, "to": 1}`, ""},
		{"reads", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 2, "to": 2, "reads": true}`, ""},
		{"a command", `{"workload": {"target": "null://", "rate": "1/s", "for": "9s", "at": "1s", "exec": "true"}, "clients": 2}`, `{"from": 0, "to": 1}`, "runs no commands"},
		{"a fault", `{"workload": {"target": "null://", "rate": "1/s", "for": "9s", "fault": "1s:stop=pid:1,1s"}, "clients": 2}`, `{"from": 0, "to": 1}`, "makes no faults"},
		{"a file", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s", "payload": "file:/x"}, "clients": 2}`, `{"from": 0, "to": 1}`, "allows no files"},
		{"a file of a part", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s", "parts": [{"weight": "1"}, {"weight": "1", "payload": "file:/x"}]}, "clients": 2}`, `{"from": 0, "to": 1}`, "allows no files"},
		{"no clients", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 1, "to": 1}`, "the plan has the clients 1 to 1 of 2"},
		{"too many clients", `{"workload": {"target": "null://", "rate": "1/s", "for": "1s"}, "clients": 2}`, `{"from": 1, "to": 3}`, "the plan has the clients 1 to 3 of 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, _, err := a.parse([]byte(c.plan), []byte(c.share))
			assert.True(t, (err == nil) == (c.want == "") && (err == nil || strings.Contains(err.Error(), c.want)),
				"got %v, want %q", err, c.want)
		})
	}
}
