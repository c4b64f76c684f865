package measure

import (
	"testing"
	"time"

	"carronade/test/testkit/assert"
)

func TestIndexed(t *testing.T) {
	// The figures of the run in hey-apm's manual.
	x := Indexed{Before: 100, After: 15485, Expected: 19431, Span: 30 * time.Second}
	assert.Equal(t, x.Documents(), int64(15385), "documents")
	got, ok := x.Share()
	assert.True(t, ok && got >= 0.7917 && got <= 0.7918, "share %v %v, want 79.18%%", got, ok)
	got = x.Rate()
	assert.True(t, got >= 512.8 && got <= 512.9, "rate %v, want 512.83", got)
	x = Indexed{Before: 10, After: 4}
	assert.Equal(t, x.Documents(), -6, "documents")
	_, ok = x.Share()
	assert.True(t, !ok && x.Rate() == 0, "a share without expected documents, or a rate without a span")
}
