package advice

import (
	"errors"
	"fmt"
	"testing"

	"carronade/test/testkit/assert"
)

// TestHint: the outermost hint of an error counts.
func TestHint(t *testing.T) {
	inner := &Error{Doing: "connect to h", Err: errors.New("refused"), Hint: "start it"}
	for _, tt := range []struct {
		err        error
		text, hint string
	}{
		{inner, "connect to h: refused", "start it"},
		{&Error{Doing: "--at", Err: fmt.Errorf("x: %w", inner)}, "--at: x: connect to h: refused", "start it"},
		{&Error{Err: inner, Hint: "wait"}, "connect to h: refused", "wait"},
		{&Error{Doing: "nothing"}, "nothing", ""},
		{errors.New("bare"), "bare", ""},
	} {
		assert.Equal(t, tt.err.Error(), tt.text)
		assert.Equal(t, Hint(tt.err), tt.hint, "%v", tt.err)
	}
}

func TestNearest(t *testing.T) {
	among := []string{"at", "rate", "retry", "repeat", "linger", "max-in-flight", "for"}
	for _, tt := range []struct{ text, want string }{
		{"rat", "rate"}, // and not "at"
		{"lingr", "linger"},
		{"lniger", "linger"},
		{"max-inflight", "max-in-flight"},
		{"compression", ""},
		{"x", ""},
		{"max", "max-in-flight"},
		{"foo", ""}, // as similar to "for" as any word of three letters
		{"fro", "for"},
		{"four", "for"},
	} {
		assert.Equal(t, Nearest(tt.text, among), tt.want, "%s", tt.text)
	}
}

func TestDidYouMean(t *testing.T) {
	for _, tt := range []struct{ typed, want string }{{"colate", "did you mean carronade collate?"}, {"xyzzy", "there are two"}} {
		assert.Equal(t, DidYouMean(tt.typed, []string{"collate", "compare"}, "carronade %s", "there are two"), tt.want, "%s", tt.typed)
	}
}
