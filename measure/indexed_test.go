package measure

import (
	"testing"
	"time"

	"carronade/internal/testkit/assert"
)

func TestIndexed(t *testing.T) {
	// The figures of the run in hey-apm's manual.
	x := Indexed{Before: 100, After: 15485, Expected: 19431, Span: 30 * time.Second}
	if got, want := x.Documents(), int64(15385); got != want {
		t.Errorf("documents %d, want %d", got, want)
	}
	if got, ok := x.Share(); !ok || got < 0.7917 || got > 0.7918 {
		t.Errorf("share %v %v, want 79.18%%", got, ok)
	}
	if got := x.Rate(); got < 512.8 || got > 512.9 {
		t.Errorf("rate %v, want 512.83", got)
	}
	x = Indexed{Before: 10, After: 4}
	assert.Equal(t, x.Documents(), -6, "documents")
	if _, ok := x.Share(); ok || x.Rate() != 0 {
		t.Error("a share without expected documents, or a rate without a span")
	}
}
