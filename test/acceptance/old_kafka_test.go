//go:build conformance

package acceptance

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"carronade/test/testkit/assert"
	"carronade/test/testkit/kafkatest"
)

// Everything that the documents promise of old clusters works on them: operations, both engines, groups,
// transactions, verified runs, topics, the drop-ins; and what a release does not have is refused by name.
func TestOldKafka(t *testing.T) {
	for _, version := range slices.Sorted(maps.Keys(kafkatest.OldVersions)) {
		t.Run(version, func(t *testing.T) {
			broker := kafkatest.StartOld(t, version)
			zstd := 0
			if version < "2.1" {
				zstd = 2
			}
			latency := filepath.Join(t.TempDir(), "latency.properties")
			assert.OK(t, os.WriteFile(latency, nil, 0o600))
			for _, tt := range []struct {
				line string
				code int
			}{
				{"topics create kafka://BROKER/t --partitions 3 --replicas 1", 0},
				{"topics describe kafka://BROKER/t", 0},
				{"topics list kafka://BROKER", 0},
				{"run kafka://BROKER/made --count 200 --rate 2k/s --create-topic partitions=2", 0},
				{"run kafka://BROKER/defaults --count 200 --rate 2k/s --create-topic auto", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --verify", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --engine client", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression gzip", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression snappy", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression lz4", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --compression zstd", zstd},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --idempotent --acks all", 0},
				{"run kafka://BROKER/t --count 2k --rate 2k/s --engine client --transactions --verify", 0},
				{"run kafka://BROKER/t --op consume --count 5k", 0},
				{"run kafka://BROKER/t --op consume --count 5k --engine client", 0},
				{"run kafka://127.0.0.1:9,BROKER/t --op consume --count 5k --engine client --group g", 0},
				{"run kafka://BROKER/t --op roundtrip --count 1k --rate 500/s", 0},
				{"doctor kafka://BROKER/t", 0},
				{"profile kafka://BROKER/t", 0},
				{"as kafka-producer-perf-test --topic t --num-records 2000 --record-size 100 --throughput 2000 --producer-props bootstrap.servers=BROKER", 0},
				{"as kafka-consumer-perf-test --topic t --messages 2000 --bootstrap-server BROKER", 0},
				{"as kafka-e2e-latency BROKER t 200 1 100 " + latency, 0},
				{"as mongoose --storage-driver-type=kafka --storage-net-node-addrs=BROKER --item-output-path=t --item-data-size=100 --load-op-limit-count=500", 0},
				{"topics delete kafka://BROKER/made", 0},
			} {
				e := run(t, strings.Fields(strings.ReplaceAll(tt.line, "BROKER", broker))...)
				// 3: this machine is busy. doctor warns of it with 1.
				ok := e.code == tt.code || tt.code == 0 && (e.code == 3 || e.code == 1 && strings.HasPrefix(tt.line, "doctor"))
				assert.True(t, ok, "%s: exit %d, want %d\n%s%s", tt.line, e.code, tt.code, e.stdout, e.stderr)
			}
		})
	}
}
