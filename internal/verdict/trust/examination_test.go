package trust

import (
	"encoding/json"
	"testing"

	"carronade/protocol"
	"carronade/test/testkit/assert"
)

// TestEntryOfBefore: a fix is read under its name of before, too.
func TestEntryOfBefore(t *testing.T) {
	want := ExaminationEntry{"machine", protocol.Finding{Check: "swap", Level: protocol.LevelNote, Found: "it is on", Fix: "swapoff -a"}}
	now := assert.Value(json.Marshal(want))(t)
	for _, text := range []string{
		string(now),
		`{"about":"machine","check":"swap","level":"note","found":"it is on","mend":"swapoff -a"}`,
	} {
		var got ExaminationEntry
		assert.OK(t, json.Unmarshal([]byte(text), &got))
		assert.Same(t, got, want, "%s", text)
	}
	assert.Equal(t, string(now), `{"about":"machine","check":"swap","level":"note","found":"it is on","fix":"swapoff -a"}`)
}
