package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestClasses(t *testing.T) {
	var a, b Classes
	a.Add("timeout", 3, 1)
	a.Add("refused", 2, 2)
	a.Add("timeout", 1, 1)
	b.Add("authorization", 5, 1)
	b.Merge(a)
	want := Classes{{"authorization", 5, 1}, {"refused", 2, 2}, {"timeout", 4, 2}}
	if d := cmp.Diff(want, b); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff(Classes{{"refused", 2, 2}, {"timeout", 4, 2}}, a); d != "" {
		t.Error("Merge changed its argument:", d)
	}
}
