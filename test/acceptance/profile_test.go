//go:build conformance

package acceptance

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// A fitted is what `carronade profile --json` prints.
type fitted struct {
	Schema string `json:"schema"`
	Source struct {
		Read  uint64 `json:"read"`
		Whole bool   `json:"whole"`
	} `json:"source"`
	Parameters struct {
		Sizes struct {
			Family string  `json:"family"`
			Mean   float64 `json:"mean"`
		} `json:"sizes"`
		Content struct {
			Codec string  `json:"codec"`
			Ratio float64 `json:"ratio"`
		} `json:"content"`
		Batches struct {
			Codec string `json:"codec"`
		} `json:"batches"`
		Keys struct {
			Family string `json:"family"`
		} `json:"keys"`
	} `json:"parameters"`
}

func profile(t *testing.T, args ...string) (f fitted) {
	t.Helper()
	e := run(t, append([]string{"profile", "--json"}, args...)...).want(t, 0)
	err := json.Unmarshal([]byte(e.stdout), &f)
	assert.Must(t, err == nil && f.Schema == "carronade.profile/1", "the profile: %v\n%.500s", err, e.stdout)
	return f
}

// TestProfile fits a workload to a topic that Kafka's perf tool filled from a file of payloads,
// runs it against Kafka, and fits another one to that.
func TestProfile(t *testing.T) {
	t.Parallel()
	broker := kafkatest.Shared(t)
	topic := broker.CreateTopic(t, 3, 1)
	dir := t.TempDir()
	// Lines of three sizes, of text that compresses.
	var lines []string
	for i := range 300 {
		lines = append(lines, fmt.Sprintf(`{"order":%d,"customer":%d,"note":"%s"}`, 10_000+i, 5000+7*i, strings.Repeat("as soon as possible ", 1+i%3*4)))
	}
	payloads := filepath.Join(dir, "payloads.txt")
	assert.OK(t, os.WriteFile(payloads, []byte(strings.Join(lines, "\n")), 0o644))
	broker.Tool(t, "ProducerPerformance", "--topic", topic, "--num-records", "20000", "--payload-file", payloads, "--throughput", "8000", "--command-property", "compression.type=lz4")

	file := filepath.Join(dir, "fitted.yaml")
	before := profile(t, topicURL(broker, topic), "-o", file, "--to", topicURL(broker, topic+"-again"))
	p := before.Parameters
	assert.Must(t, before.Source.Read == 20_000 && before.Source.Whole && p.Keys.Family == "none" &&
		p.Batches.Codec == "lz4" && p.Sizes.Family == "weighted", "the profile of the perf tool's topic: %+v", before)
	text, err := os.ReadFile(file)
	assert.Must(t, err == nil && !strings.Contains(string(text), "customer"), "the workload: %v\n%s", err, text)
	run(t, "run", "-f", file, "--quiet").wantOneOf(t, 0, 3)
	after := profile(t, topicURL(broker, topic+"-again"), "-o", filepath.Join(dir, "again.yaml")).Parameters
	if math.Abs(after.Sizes.Mean/p.Sizes.Mean-1) > 0.05 || math.Abs(after.Content.Ratio/p.Content.Ratio-1) > 0.05 || after.Batches.Codec != "lz4" {
		t.Errorf("after the run: %+v, want it within 5%% of %+v", after, p)
	}
}
