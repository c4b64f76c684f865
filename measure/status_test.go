package measure

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestStatuses(t *testing.T) {
	var a, b Statuses
	a.Add(503, 1, 10)
	a.Add(202, 2, 20)
	a.Add(503, 1, 5)
	b.Add(400, 1, 1)
	b.Add(202, 1, 10)
	before := append(Statuses(nil), b...)
	a.Merge(b)
	want := Statuses{{202, 3, 30}, {400, 1, 1}, {503, 2, 15}}
	assert.Same(t, a, want)
	assert.Same(t, b, before, "argument of Merge")
}
