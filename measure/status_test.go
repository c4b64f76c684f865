package measure

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
	if d := cmp.Diff(want, a); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if d := cmp.Diff(before, b); d != "" {
		t.Errorf("Merge changed its argument:\n%s", d)
	}
}
