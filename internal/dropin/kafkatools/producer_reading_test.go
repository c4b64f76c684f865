package kafkatools

import (
	"strings"
	"testing"

	"carronade/internal/dropin"
	"carronade/test/testkit/assert"
)

// Flags that fit several generations select the lines of the oldest and today's
// client; a note names the generations.
func TestProducerReadArgs(t *testing.T) {
	const props = "--producer-props bootstrap.servers=a:1"
	for _, tt := range []struct {
		name, generation, args string
		profile, lines         string
		note                   string
	}{
		{"of all", "", props + " acks=1", "java", "2018", noteAll},
		{"of all, by a file", "", "--producer.config testdata/client.properties", "java", "2018", noteAll},
		{"of all, with a codec", "", props + " compression.type=lz4 enable.idempotence=true", "java", "2018", noteAll},
		{"of all, in transactions", "", props + " --transactional-id x --transaction-duration-ms 100", "java", "2018", noteAll},
		{"2018", "2018", props, "java1", "2018", ""},
		{"4.1", "4.1", props, "java", "4.1", ""},
		{"4.3", "4.3", props, "java", "4.3", ""},
		{"4.2", "4.2", props, "java", "4.3", ""},
		{"a property that came later", "", props + " delivery.timeout.ms=1000", "java", "4.1", noteTwo},
		{"a codec that came later", "", props + " compression.type=zstd", "java", "4.1", noteTwo},
		{"a codec's level", "", props + " compression.gzip.level=9", "java", "4.1", noteTwo},
		{"an id alone", "", props + " --transactional-id x", "java", "4.1", noteTwo},
		{"a fractional rate", "", props + " --throughput 33.5", "java", "4.1", noteTwo},
		{"a flag of 4.3", "", props + " --warmup-records 5", "java", "4.3", ""},
		{"4.3 alone", "", "--bootstrap-server a:1", "java", "4.3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := runProducerTool(t, dropin.Program{Args: strings.Fields(producerArgs + "--throughput -1 " + tt.args), Generation: tt.generation})
			assert.Equal(t, s.Last()["profile"], tt.profile, "the profile")
			assert.True(t, grammar[tt.lines].MatchString(s.Out), "lines are not those of %s:\n%s", tt.lines, s.Out)
			if note, _, _ := strings.Cut(s.Errs, "\n"); tt.note != "" && note != tt.note || strings.Contains(s.Errs, "note: these") != (tt.note != "") {
				t.Errorf("stderr %q, want %q", s.Errs, tt.note)
			}
		})
	}
}
