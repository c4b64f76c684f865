package conn

import (
	"testing"

	"carronade/test/testkit/assert"
)

// TestOptions checks which connection options reports are grouped by. For
// connect-timeout that depends on the kind.
func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name    string
		connect ConnectTimeout
		want    []string
	}{
		{"none", ConnectTimeout{}, []string{"request-timeout", "send-buffer", "recv-buffer"}},
		{"dependent", ConnectTimeout{Default: "10s"}, []string{"request-timeout", "connect-timeout", "send-buffer", "recv-buffer"}},
		{"independent", ConnectTimeout{Default: "5s", Independent: true}, []string{"request-timeout", "connect-timeout", "send-buffer", "recv-buffer"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := Options("connections", tt.connect)
			assert.Must(t, len(rows) == len(tt.want), "got %d rows, want %v", len(rows), tt.want)
			for i, row := range rows {
				independent := true
				if row.Name == "connect-timeout" {
					independent = tt.connect.Independent
					assert.Equal(t, row.Default, tt.connect.Default, "default")
				}
				if row.Name != tt.want[i] || row.Independent != independent || row.Group != "connections" || row.Help == "" {
					t.Errorf("got %+v, want %s, independent %v and explained", row, tt.want[i], independent)
				}
			}
		})
	}
}
