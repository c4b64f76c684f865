package cli_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// TestVaryTopics: cells that create topics with different settings have topics of their own, which the runs delete if
// they are to.
func TestVaryTopics(t *testing.T) {
	t.Parallel()
	broker := child(t, "kafka", "--in-memory")
	names := func() []string {
		t.Helper()
		var out struct {
			Topics []struct {
				Name       string
				Partitions int
			} `json:"topics"`
		}
		cmd := exec.Command(carronade(t), "topics", "list", "kafka://"+broker.Addr(), "--no-store", "--json")
		assert.OK(t, json.Unmarshal(assert.Value(cmd.Output())(t), &out))
		var all []string
		for _, topic := range out.Topics {
			all = append(all, topic.Name)
		}
		return all
	}
	vary := func(args ...string) {
		t.Helper()
		p := begin(t, exec.Command(carronade(t), append([]string{"run", "kafka://" + broker.Addr() + "/v-{0..3}", "--repeat", "2", "--rate", "500/s", "--count", "50", "--quiet"}, args...)...))
		if code := p.end(t); code != 0 && code != 3 && code != 4 { // a busy machine is not trusted, or cannot tell
			t.Fatalf("exit code %d:\n%s%s", code, p.out.String(), p.said.String())
		}
	}
	vary("--vary", "topics=1,3", "--create-topic", "auto")
	assert.Equal(t, strings.Join(names(), " "), "v-0 v-1 v-2", "topics of all cells")
	vary("--vary", "partitions=1,2", "--topics", "1", "--delete-topics")
	assert.Equal(t, len(names()), 3, "topics after the runs that delete theirs")
	vary("--vary", "partitions=1,2", "--topics", "1")
	all := names()
	assert.True(t, len(all) == 5 && strings.HasSuffix(all[3], "-1") && strings.HasSuffix(all[4], "-2"), "topics of two cells: %q", all)
}
