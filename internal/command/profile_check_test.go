package command

import (
	"strings"
	"testing"

	"carronade/internal/profile"
	"carronade/test/testkit/assert"
)

// Contents are compared also if they were sent with another codec than the source's.
func TestCheckOfContents(t *testing.T) {
	gzip := profile.Content{Codec: "gzip", Ratio: 0.4, Of: "batches"}
	for _, tt := range []struct {
		name      string
		got, want profile.Content
		rows      int
		holds     bool
		words     string
	}{
		{"alike", profile.Content{Codec: "gzip", Ratio: 0.41}, gzip, 1, true, "compresses to 41% for 40%"},
		{"too well", profile.Content{Codec: "gzip", Ratio: 0.3}, gzip, 1, false, "compresses to 30% for 40%"},
		{"another codec", profile.Content{Codec: "zstd", Ratio: 0.9}, gzip, 1, false, ", by zstd and not by gzip"},
		{"nothing came", profile.Content{}, gzip, 1, false, ", by none and not by gzip"},
		{"a source without contents", gzip, profile.Content{}, 0, true, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := &checking{Holds: true}
			c.content(tt.got, tt.want)
			assert.Must(t, len(c.Distances) == tt.rows && c.Holds == tt.holds, "got %+v, want %d with %v", c, tt.rows, tt.holds)
			if tt.rows > 0 && !strings.HasSuffix(c.Distances[0].words, tt.words) {
				t.Errorf("got %q, want %q", c.Distances[0].words, tt.words)
			}
		})
	}
}
