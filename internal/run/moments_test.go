package run

import (
	"fmt"
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

// TestMomentsLeftOut: of many moments of a name the longest are kept, and how many were not is said.
func TestMomentsLeftOut(t *testing.T) {
	var m moments
	began := time.Now()
	for i := range mostMoments + 234 {
		m.add("client", "connection lost", began, time.Duration(i))
	}
	m.add("client", "leader changed", began, 0)
	assert.Equal(t, len(m.kept[momentKey{"client", "connection lost"}]), mostMoments, "are kept")
	assert.Equal(t, fmt.Sprint(m.remarks()), `["connection lost" of the client happened 1,234 times: the report has the 1,000 longest]`)
}
