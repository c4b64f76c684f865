package cli_test

import (
	"bytes"
	"encoding/csv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"carronade/test/testkit/assert"
)

// TestConnectionsPerTopic: with clients for each topic, the broker sees as many connections for each, which have its
// events alone.
func TestConnectionsPerTopic(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{"wire", "client"} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			record := filepath.Join(t.TempDir(), "record.csv")
			broker := child(t, "kafka", "--in-memory", "--record", record)
			p := begin(t, exec.Command(carronade(t), "run", "kafka://"+broker.Addr()+"/t-{0..9}", "--create-topic", "partitions=2", "--topics", "4",
				"--clients-per-topic", "2", "--engine", engine, "--rate", "2k/s", "--count", "2k", "--verify", "--no-store", "--quiet"))
			if code := p.end(t); code != 0 && code != 3 { // a busy machine is not trusted
				t.Fatalf("exit code %d:\n%s%s", code, p.out.String(), p.said.String())
			}
			assert.OK(t, broker.Stop())
			rows := assert.Value(csv.NewReader(bytes.NewReader(assert.Value(os.ReadFile(record))(t))).ReadAll())(t)
			at := func(name string) int { return slices.Index(rows[0], name) }
			topicOf, connections := map[string]string{}, map[string]int{}
			for _, r := range rows[1:] {
				if r[at("kind")] != "produce" {
					continue
				}
				conn, topic := r[at("connection")], r[at("topic")]
				if was, ok := topicOf[conn]; !ok {
					topicOf[conn] = topic
					connections[topic]++
				} else {
					assert.Equal(t, topic, was, "a topic of connection %s", conn)
				}
			}
			assert.Equal(t, len(connections), 4, "topics")
			for topic, n := range connections {
				assert.Equal(t, n, 2, "connections that sent to %s", topic)
			}
		})
	}
}
