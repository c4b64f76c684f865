package secret

import (
	"strings"
	"testing"
)

func BenchmarkText(b *testing.B) {
	var m Mask
	m.Add("kestrel-5519", "another one", "p/w +1", "0123456789abcdef0123456789abcdef")
	for _, bb := range []struct{ name, lines string }{
		{"JSON", `{"level":"info","@timestamp":"2026-11-23T02:00:00.000Z","logger":"request","message":"request ok","url":"/intake/v2/events","status":202}` + "\n"},
		{"Kafka", "[2026-11-23 02:00:00,123] INFO [GroupCoordinator 1]: Preparing to rebalance group g-17 in state PreparingRebalance with old generation 3 (__consumer_offsets-42) (reason: Adding new member consumer-g-17-1-8a7d8a9e with group instance id None; client reason: rebalance failed due to MemberIdRequiredException) (kafka.coordinator.group.GroupCoordinator)\n" +
			"[2026-11-23 02:00:01,456] INFO [ProducerStateManager partition=t-3] Wrote producer snapshot at offset 123456 with 0 producer ids in 2 ms. (org.apache.kafka.storage.internals.log.ProducerStateManager)\n"},
		{"secrets", "2026-11-23 02:00:00 INFO login of user=joe password=abc123 token=\"x y z\" from https://u:p@h/ ok\n\tssl.key.password = abcdef\n"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			text := strings.Repeat(bb.lines, 1<<20/len(bb.lines))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				m.Text(text)
			}
		})
	}
}
