package query

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"carronade/internal/cli/cmdutil"
	"carronade/internal/riemann"
	"carronade/test/testkit/assert"
)

var now = time.Date(2026, 11, 21, 13, 0, 30, 0, time.UTC)

func events() []riemann.Event {
	return []riemann.Event{
		{
			Host: "web-03", Service: "nginx req rate", State: "ok", Metric: 64.41219999, Time: now.Add(-8 * time.Second), TTL: 60,
			Description: "sampled by carronade", Tags: []string{"carronade", "eu"}, Attributes: map[string]string{"zone": "b", "az": "1"},
		},
		{Service: "riemann server tcp 127.0.0.1:5555 in latency of a long name 0.999", Metric: int64(-9007199254740993), Time: now.AddDate(0, 0, -3), TTL: 0.5},
		{Host: "a\x1b[31mhost with more than twenty letters", State: "a state that is long", Metric: float32(0.25)},
	}
}

func TestTable(t *testing.T) {
	for _, tt := range []struct {
		name   string
		all    bool
		events []riemann.Event
		want   string
	}{
		{"none", false, nil, "no event matches\n"},
		{"one", false, events()[:1], `host    service         state   metric      time  ttl
web-03  nginx req rate  ok     64.4122  13:00:22   60
1 event
`},
		{"long ones", false, events(), "host                 service          state                metric       time ttl\n" +
			"web-03               nginx req rate   ok                  64.4122   13:00:22  60\n" +
			"-                    riemann... 0.999 -         -9007199254740993 2026-11-18 0.5\n" +
			"a [31mhos... letters -                a s...ong              0.25          -   -\n3 events\n"},
		{"everything", true, events()[:1], `host    service         state   metric      time  ttl
web-03  nginx req rate  ok     64.4122  13:00:22   60
  sampled by carronade; tags carronade, eu; az=1; zone=b
1 event
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			q := &querying{Console: cmdutil.Console{Out: &out}, all: tt.all}
			q.table(tt.events, now)
			assert.Same(t, out.String(), tt.want)
			for line := range strings.Lines(out.String()) {
				n := len([]rune(line))
				assert.True(t, n <= 81, "%d columns: %q", n, line)
			}
		})
	}
}

// NaN and infinity are strings in JSON, and no events are an empty list.
func TestAnswer(t *testing.T) {
	data, err := json.Marshal(answerOf("riemann://a", "true", []riemann.Event{{Metric: math.NaN()}, {Metric: float32(math.Inf(-1))}, {Metric: 1.5}}))
	assert.OK(t, err)
	want := `{"schema":"carronade.query/1","target":"riemann://a","query":"true","count":3,"events":[{"metric":"NaN"},{"metric":"-Inf"},{"metric":1.5}]}`
	assert.Same(t, string(data), want)
	if data, err = json.Marshal(answerOf("riemann://a", "true", nil)); err != nil || !strings.Contains(string(data), `"events":[]`) {
		t.Errorf("got %s and %v, want an empty list", data, err)
	}
}
