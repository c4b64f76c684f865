package dial

import "testing"

// TestConnOptions holds what no table may decide for itself: reports are
// grouped by how connections are made.
func TestConnOptions(t *testing.T) {
	for _, tt := range []struct {
		connect string
		want    []string
	}{
		{"", []string{"request-timeout", "send-buffer", "recv-buffer"}},
		{"5s", []string{"request-timeout", "connect-timeout", "send-buffer", "recv-buffer"}},
	} {
		rows := ConnOptions("connections", tt.connect)
		if len(rows) != len(tt.want) {
			t.Fatalf("got %d rows, want %v", len(rows), tt.want)
		}
		for i, row := range rows {
			if row.Name != tt.want[i] || !row.Independent || row.Group != "connections" || row.Help == "" {
				t.Errorf("got %+v, want %s, independent and explained", row, tt.want[i])
			}
			if row.Name == "connect-timeout" && row.Default != tt.connect {
				t.Errorf("got the default %s, want %s", row.Default, tt.connect)
			}
		}
	}
}
