package kafka

import (
	"testing"

	"carronade/internal/kafka/cluster"
	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestMembersNeed: members of consumer groups are clients, in the library's engine large ones.
func TestMembersNeed(t *testing.T) {
	room := protocol.Room{Memory: 1 << 30, From: "this machine has %s free", Files: 20_000}
	for _, tt := range []struct {
		engine          string
		groups, members int
		want            string
	}{
		{"wire", 3, 1000, ""},
		{"client", 3, 1000, ""},
		{"client", 3, 100_000, "--members 100,000 takes"},
		{"wire", 1, 30_000, "--members 30,000 takes about 30033 open files"},
	} {
		s := spec(t, "kafka://127.0.0.1:1/t", map[string][]string{"engine": {tt.engine}})
		s.Op, s.Groups, s.Members = cluster.OpRoundTrip, tt.groups, tt.members
		if err := room.Check(Kind{}.Needs(s)); tt.want == "" {
			assert.OK(t, err)
		} else {
			assert.ErrorHas(t, err, tt.want)
		}
	}
}
