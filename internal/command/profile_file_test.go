package command

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"carronade/internal/profile"
	"carronade/test/testkit/assert"
)

// TestFinish checks what is said of how the reading of a file ended.
func TestFinish(t *testing.T) {
	nothing, broken := errors.New("nothing"), &profile.Error{Where: "record 3", Err: errors.New("no JSON")}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tt := range []struct {
		name  string
		ctx   context.Context
		err   error
		found uint64
		cut   bool // it is a pipe, whose reading ended before the pipe did
		want  error
		whole bool
	}{
		{"all was read", t.Context(), nil, 3, false, nil, true},
		{"all was read, and it has nothing", t.Context(), nil, 0, false, nothing, true},
		{"enough was read", t.Context(), profile.ErrEnough, 3, false, nil, false},
		{"interrupted before the first", canceled, profile.ErrEnough, 0, false, context.Canceled, false},
		{"a broken one", t.Context(), broken, 2, false, broken, false},
		{"a pipe ends after a broken one", t.Context(), broken, 2, true, nil, false},
		{"a pipe ends after a broken one, the only one", t.Context(), broken, 0, true, broken, false},
		{"a pipe ends before the first", t.Context(), nil, 0, true, nothing, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := &input{Reader: bufio.NewReader(strings.NewReader("")), ctx: tt.ctx}
			if tt.cut {
				in.waiting = &waiting{cut: true}
			}
			var src source
			assert.Equal(t, in.finish(&src, tt.err, tt.found, nothing), tt.want) //nolint:errorlint // the very error
			got, want := fmt.Sprint(src.Whole, src.Interrupted, src.Broken), fmt.Sprint(tt.whole, tt.ctx.Err() != nil, map[bool]int{true: 1}[tt.cut && tt.err != nil])
			assert.Equal(t, got, want, "whole, interrupted, broken")
		})
	}
}
