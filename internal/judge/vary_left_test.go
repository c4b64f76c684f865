package judge

import (
	"strings"
	"testing"

	"carronade/internal/layout"
	"carronade/test/testkit/assert"
)

// What was left out of a series stands before its numbers.
func TestVaryLeftOutFirst(t *testing.T) {
	t.Parallel()
	v := Variation{Op: "produce", Target: "null://", Rounds: 2, LeftOut: []LeftOut{{ID: "k3v9x2ab", Why: notTrusted}}}
	var b strings.Builder
	assert.OK(t, v.Text(&b, layout.Style{}))
	fourth := strings.Split(b.String(), "\n")[3]
	assert.Equal(t, strings.Join(strings.Fields(fourth), " "), "left out k3v9x2ab: "+notTrusted)
}
