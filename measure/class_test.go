package measure

import (
	"testing"

	"carronade/test/testkit/assert"
)

func TestClasses(t *testing.T) {
	var a, b Classes
	a.Add("timeout", 3, 1)
	a.Add("refused", 2, 2)
	a.Add("timeout", 1, 1)
	b.Add("authorization", 5, 1)
	b.Merge(a)
	want := Classes{{"authorization", 5, 1}, {"refused", 2, 2}, {"timeout", 4, 2}}
	assert.Same(t, b, want)
	assert.Same(t, a, Classes{{"refused", 2, 2}, {"timeout", 4, 2}}, "argument of Merge")
}
