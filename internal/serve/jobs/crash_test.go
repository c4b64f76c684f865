package jobs

import (
	"strings"
	"testing"

	"carronade/test/testkit/assert"
)

// What a crash for lack of memory prints is replaced, in whatever pieces it comes, and all other texts are kept.
func TestCrash(t *testing.T) {
	for _, tt := range []struct{ name, before, crash, want string }{
		{"Go's runtime", "one\n", "runtime: out of memory: cannot allocate 4194304-byte block (4 in use)\nfatal error: out of memory\n\ngoroutine 1 [running]:\n", "one\nsaid\n"},
		{"the runtime of C", "one\n", "runtime/cgo: pthread_create failed: Resource temporarily unavailable\nSIGABRT: abort\n", "one\nsaid\n"},
		{"at the beginning", "", "fatal error: runtime: cannot allocate memory\n", "said\n"},
		{"many stacks", "one\n", "fatal error: out of memory\n" + strings.Repeat("goroutine\n", mostHeld/8), "one\nsaid\n"},
		{"another reason", "one\n", "fatal error: all goroutines are asleep\n\ngoroutine 1:\n", ""},
		{"another reason, with many stacks", "one\n", "runtime: cannot do it\nfatal error: no\n" + strings.Repeat("goroutine\n", mostHeld/8), ""},
		{"not at the beginning of a line", "one\nerror: ", "fatal error: out of memory\ntwo\n", ""},
		{"no whole line", "one\n", "fatal error: ", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, size := range []int{1, 5, 1000, 1 << 20} { // of pieces
				var got strings.Builder
				c := NewCrash(func(p []byte) { got.Write(p) })
				c.Write([]byte(tt.before))
				for text := tt.crash; text != ""; {
					n := min(size, len(text))
					c.Write([]byte(text[:n]))
					text = text[n:]
				}
				said, want := "", tt.want
				if c.TookAll() {
					said = "said\n"
				}
				if c.End(said); want == "" {
					want = tt.before + tt.crash
				}
				assert.Equal(t, got.String() == want, true, "pieces of %d: %.99q", size, got.String())
			}
		})
	}
	c := NewCrash(func(p []byte) {})
	c.Write([]byte("fatal error: out of memory\n" + strings.Repeat("x", 2*mostHeld)))
	assert.Equal(t, len(c.held), mostHeld, "kept bytes")
}
